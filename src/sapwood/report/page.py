"""The report as a page of HTML: what it says, and in which order."""

import hashlib
import math
import os
import platform
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import metadata, resources
from typing import Any

import numpy as np

from sapwood import plot
from sapwood.evaluate.result import BASELINES, UNSCORED, Errors, Evaluation
from sapwood.formatting import number, plain
from sapwood.inspect.view import TreePicture
from sapwood.model import readable_part
from sapwood.plot.clock import along_of
from sapwood.plot.model import MOST_BARS, picture_of
from sapwood.report.bounds import render_bounds, render_target_bounds
from sapwood.report.changes import render_changes
from sapwood.report.charts import chart
from sapwood.report.html import (
    ABSENT,
    Column,
    count,
    left_out,
    measured,
    megabytes,
    section,
    share,
    table,
    text,
    told_alike,
)
from sapwood.report.hybrid import render_hybrid
from sapwood.report.members import render_members
from sapwood.report.rows import render_columns, render_predictions, render_residuals
from sapwood.report.targets import render_shared_tree, render_target_curves, render_targets
from sapwood.report.tree_view import render_tree
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = ["file_name", "render", "verdict", "whole_page", "write_report"]

MOST_POINTS = 20  # of the curve that a table shows

TITLES = {
    "result": "Result",
    "predictions": "Predictions",
    "bounds": "Bounds",
    "error": "Error",
    "residuals": "Residuals",
    "changes": "Changes",
    "size": "Size",
    "speed": "Speed",
    "importances": "Importances",
    "refused": "Rejected rows",
    "columns": "Columns",
    "hybrid": "Online and batch model",
    "members": "Members",
    "tree": "Tree",
    "settings": "Settings",
}

TOP = ("result", "predictions", "bounds", "error", "residuals", "changes")


def write_report(
    path: StrPath,
    evaluation: Evaluation,
    model: Any = None,
    *,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Write the report of an evaluation: one HTML file that needs nothing else.

    Parameters
    ----------
    path : str or path-like
        Where to write; an old file is replaced at once.
    evaluation : Evaluation
        What to tell.
    model : object, optional
        The model as it is after the evaluation. Of one that is not Sapwood's, or without one, the
        parts about its inside are left out.
    settings : mapping of str to str, optional
        What else is worth knowing about the run. Parameters of the model are included anyway.

    Examples
    --------
    >>> import os, sapwood, tempfile
    >>> from sapwood import streams
    >>> from sapwood.evaluate import prequential
    >>> tree = sapwood.HoeffdingTreeRegressor()
    >>> found = prequential(tree, streams.friedman(rows=5000))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     write_report(path, found, tree)
    ...     os.path.getsize(path) > 50_000
    True
    """
    write_atomically(path, render(evaluation, model, settings=settings).encode())


def render(
    evaluation: Evaluation, model: Any = None, *, settings: Mapping[str, str] | None = None
) -> str:
    """Return what `write_report` would write; the same for the same evaluation.

    Parameters
    ----------
    evaluation, model, settings
        As for `write_report`.
    """
    if evaluation.targets:
        return _page_of_targets(evaluation, model, settings or {})
    picture = picture_of(model)
    members = render_members(evaluation, model)
    absent = "no model was given" if model is None else "the model is none of Sapwood's"
    parts = {
        "result": _result(evaluation),
        "predictions": render_predictions(evaluation),
        "bounds": render_bounds(evaluation, model),
        "error": _error(evaluation),
        "residuals": render_residuals(evaluation),
        "changes": render_changes(evaluation),
        "size": _size(evaluation),
        "speed": _speed(evaluation),
        "importances": _importances(evaluation, model, absent),
        "refused": _refused(evaluation),
        "columns": render_columns(evaluation.columns) if evaluation.columns else None,
        "hybrid": render_hybrid(model),
        "members": members,
        "tree": _tree(evaluation, picture, absent) if picture or not members else None,
        "settings": _settings(evaluation, model, settings or {}),
    }
    known = {name: body for name, body in parts.items() if body is not None}
    made = {name: section(name, TITLES[name], body) for name, body in known.items()}
    links = " ".join(f'<a href="#{name}">{TITLES[name]}</a>' for name in known)
    middle = "".join(made[name] for name in ("size", "speed", "importances", "refused"))
    headline = f"{text(_short_name(evaluation.model))} on {text(file_name(evaluation.stream))}"
    top = "".join(made[name] for name in TOP if name in made)
    main = (
        f'{top}<div class="side-by-side">\n{middle}</div>\n'
        f"{made.get('columns', '')}{made.get('hybrid', '')}{made.get('members', '')}"
        f"{made.get('tree', '')}"
        f"{made['settings']}"
    )
    return whole_page("evaluation", headline, _course(evaluation), links, main)


def _page_of_targets(evaluation: Evaluation, model: Any, settings: Mapping[str, str]) -> str:
    """Return the page of an evaluation of several targets."""
    picture, members = picture_of(model), render_members(evaluation, model)
    absent = "no model was given" if model is None else "the model is none of Sapwood's"
    tree = None if members else left_out(absent)
    first = next(iter(evaluation.targets.values()))
    parts = {
        "result": f'<p class="verdict">{text(evaluation.headline)}</p>\n'
        f"{render_targets(evaluation)}{_row_table(evaluation)}",
        "bounds": render_target_bounds(evaluation, model),
        "error": render_target_curves(evaluation),
        "changes": render_changes(evaluation),
        "size": _size(replace(evaluation, curve=first.curve, speed=first.speed)),
        "importances": _importances(evaluation, model, absent),
        "refused": _refused(evaluation),
        "columns": render_columns(evaluation.columns) if evaluation.columns else None,
        "hybrid": render_hybrid(model),
        "members": members,
        "tree": tree if picture is None else render_shared_tree(picture),
        "settings": _settings(evaluation, model, settings),
    }
    known = {name: body for name, body in parts.items() if body is not None}
    links = " ".join(f'<a href="#{name}">{TITLES[name]}</a>' for name in known)
    main = "".join(section(name, TITLES[name], body) for name, body in known.items())
    headline = f"{text(_short_name(evaluation.model))} on {text(file_name(evaluation.stream))}"
    return whole_page("evaluation", headline, _course(evaluation), links, main)


def whole_page(kind: str, headline: str, words: str, links: str, main: str) -> str:
    """Return a page of parts.

    Parameters
    ----------
    kind : str
        What the page is of.
    headline, words, links, main : str
        Its title, what stands below, the links to its parts, and the parts, as pieces of a page.
    """
    css, script = _file("page.css"), _file("page.js")
    # Nothing is fetched, and no script runs but this one.
    known = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{known}'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{headline}</title>
<style>
{css}</style>
</head>
<body>
<header>
<p class="kind">Sapwood · {kind}</p>
<h1>{headline}</h1>
<p>{words}</p>
<nav aria-label="Parts">{links}</nav>
</header>
<main>
{main}</main>
<script>{script}</script>
</body>
</html>
"""


def _file(name: str) -> str:
    return resources.files("sapwood.report").joinpath(name).read_text(encoding="utf-8")


def file_name(stream: str) -> str:
    """Return the name of a file without its folders; of other streams the whole name."""
    return os.path.basename(os.path.normpath(stream)) or stream


def _short_name(model: str) -> str:
    """Return the name of a class alone if its repr is given.

    Examples
    --------
    >>> _short_name("<LaggedModel(<ForestRegressor(): 10 trees, 9 rows>, Lags(lags=(1,)))>")
    'ForestRegressor with lags'
    """
    found = re.match(r"<LaggedModel\(<?(\w+)\(", model)
    if found:
        return f"{found[1]} with lags"
    found = re.match(r"<(\w+)\(", model)
    return found[1] if found else model


def _course(evaluation: Evaluation) -> str:
    rows, without = evaluation.rows_predicted, evaluation.rows_without_target
    told = (
        f"Each of {count(rows)} rows was predicted, then learned." if rows else "No row was good."
    )
    if without:
        told = f"{count(rows)} rows were predicted, and learned when their labels were there."
        told += f" {count(without)} came without one"
        joined = evaluation.labels_joined
        told += f", and {count(joined)} of these had theirs later." if joined else "."
    return f"Target: <b>{text(evaluation.target)}</b>. {told}"


def verdict(evaluation: Evaluation) -> str:
    """Return in a few plain sentences how good the predictions are.

    Parameters
    ----------
    evaluation : Evaluation
        What to judge.
    """
    total, lately = evaluation.total, evaluation.window
    unscored = _unscored(evaluation)
    if evaluation.rows_scored == 0 or not math.isfinite(total.mae):
        return f"No prediction could be scored, so there is nothing to report.{unscored}"
    target = plain(evaluation.target, 40)
    told = [f"{evaluation.headline}."] if evaluation.baselines else []
    told += [f"On average a prediction of {target} was off by {measured(total.mae)}."]
    mean = f"always predicting the mean ({measured(evaluation.target_mean)})"
    if math.isnan(total.r2):
        told.append("The target does not vary, so there is nothing to compare this with.")
    elif total.r2 >= 0:
        percent = number(100 * total.r2, 4 if total.r2 > 0.99 else 3)
        told.append(f"The squared error is {percent} % below that of {mean}.")
    else:
        times = number(1 - total.r2, 3)
        told.append(f"The squared error is {times} times that of {mean}: worse than no model.")
    scored = evaluation.rows_scored
    window = min(evaluation.window_rows, scored)
    if window < scored and math.isfinite(lately.mae) and total.mae > 0:
        ratio = lately.mae / total.mae
        how = "less" if ratio < 0.97 else "more" if ratio > 1.03 else "about the same"
        of = f"{measured(lately.mae)}, with an R² of {measured(lately.r2, 3)}"
        told.append(f"Over the last {count(window)} rows it was {how}: {of}.")
    return " ".join(told) + unscored


def _unscored(evaluation: Evaluation) -> str:
    """Return a sentence on the rows that are not part of the errors, if there are any."""
    if not evaluation.unscored:
        return ""
    rows = f"{count(evaluation.unscored)} of {count(evaluation.rows_learned)} rows"
    first = plain(evaluation.first_unscored, 80)
    return f" Not scored are {rows}, whose {UNSCORED}; the first is {first}."


def _result(evaluation: Evaluation) -> str:
    total, refused = evaluation.total, evaluation.refused.count
    tiles = [
        ("MAE", measured(total.mae), "mean absolute error"),
        ("RMSE", measured(total.rmse), "root mean squared error"),
        ("R²", measured(total.r2), "1 is perfect, 0 is the mean"),
        ("Rows", count(evaluation.rows_read), "read"),
        ("Rejected", count(refused), f"{text(share(refused, evaluation.rows_read))} of them"),
        ("Speed", _rate(evaluation.steady_rows_per_second), "rows per second, once started"),
        (
            "Leaves",
            ABSENT if evaluation.leaves is None else count(evaluation.leaves),
            "in the end",
        ),
        (
            "Memory",
            ABSENT if evaluation.model_bytes is None else megabytes(evaluation.model_bytes),
            "in the end",
        ),
    ]
    cards = "\n".join(
        f"<div><dt>{name}</dt><dd>{value}</dd><dd>{words}</dd></div>"
        for name, value, words in tiles
    )
    return (
        f'<p class="verdict">{text(verdict(evaluation), 500)}</p>\n<dl class="tiles">{cards}</dl>\n'
        f'<div class="side-by-side">{_error_table(evaluation)}{_row_table(evaluation)}</div>'
    )


def _error_table(evaluation: Evaluation) -> str:
    total, faded, window = evaluation.total, evaluation.faded, evaluation.window
    found = [total, faded, window]
    scored = evaluation.rows_scored
    names = [
        "all rows",
        f"exponentially weighted <small>{_fading(evaluation.fade)}</small>",
        f"last {count(min(evaluation.window_rows, scored))} rows",
    ]
    if evaluation.baselines:
        names += [BASELINES[name] for name in evaluation.baselines]
        found += [baseline.total for baseline in evaluation.baselines.values()]
    else:
        names.append("the mean alone")
        found.append(Errors(math.nan, evaluation.target_deviation, 0.0))
    columns = [
        told_alike([getattr(each, name) for each in found]) for name in ("mae", "rmse", "r2")
    ]
    unit = text(plain(evaluation.target, 40))
    heads = [Column("over", numbers=False), Column("MAE"), Column("RMSE"), Column("R²")]
    made = table(heads, zip(names, *columns, strict=True), caption=f"Errors in units of {unit}")
    return f'<div class="wide scroll">{made}</div>'


def _fading(fade: float) -> str:
    if not 0 < fade < 1:
        return ""
    return f"half-life {count(math.log(0.5) / math.log(fade))} rows"


def _row_table(evaluation: Evaluation) -> str:
    rows = [
        ("read", count(evaluation.rows_read)),
        ("predicted", count(evaluation.rows_predicted)),
        ("learned", count(evaluation.rows_learned)),
        ("rejected", count(evaluation.refused.count)),
        ("not scored", count(evaluation.unscored)),
    ]
    if evaluation.rows_without_target:
        rows += [("without a target", count(evaluation.rows_without_target))]
    if evaluation.labels_joined:
        rows += [("labels that came later", count(evaluation.labels_joined))]
    heads = (Column("rows", numbers=False), Column("count"))
    return f'<div class="scroll">{table(heads, rows, caption="What became of the rows")}</div>'


def _error(evaluation: Evaluation) -> str:
    names: dict[plot.Measure, str] = {
        "mae": "Mean absolute error (MAE)",
        "rmse": "Root mean squared error (RMSE)",
        "r2": "R², against the mean alone",
    }
    along = along_of(evaluation)
    charts = "\n".join(
        chart(
            name,
            title,
            partial(plot.learning_curve, evaluation, name, along=along),
            is_time=along == "time",
        )
        for name, title in names.items()
    )
    return f'<div class="charts">{charts}</div>\n{_curve_table(evaluation)}'


def _curve_table(evaluation: Evaluation) -> str:
    """Return some points of the curves in numbers."""
    curve = evaluation.curve
    if not len(curve):
        return ""
    places = np.unique(np.linspace(0, len(curve) - 1, MOST_POINTS).round().astype(int))
    fields = ["mae", "faded_mae", "rmse", "faded_rmse", "r2", "faded_r2"]
    heads = [
        "rows",
        "MAE",
        "weighted",
        "RMSE",
        "weighted",
        "R²",
        "weighted",
        "leaves",
        "MB",
        "rows/s",
    ]
    points = curve[places]
    columns = [
        [count(row) for row in points["row"].tolist()],
        *(told_alike(points[name].tolist()) for name in fields),
        [ABSENT if leaves < 0 else count(leaves) for leaves in points["leaves"].tolist()],
        told_alike(np.where(points["bytes"] < 0, np.nan, points["bytes"] / 1e6).tolist()),
        [_rate(rate) for rate in evaluation.speed[places, 1].tolist()],
    ]
    made = table([Column(name) for name in heads], zip(*columns, strict=True))
    return (
        '<details class="more"><summary>The curves in numbers</summary>'
        f'<div class="scroll">{made}</div></details>'
    )


def _rate(value: float) -> str:
    return count(float(f"{value:.3g}")) if math.isfinite(value) else ABSENT


def _speed(evaluation: Evaluation) -> str:
    if not evaluation.seconds > 0:
        return left_out("no time was measured")
    took = f"{measured(evaluation.seconds, 3)} s"
    part = share(evaluation.model_seconds, evaluation.seconds)
    words = f"{took} in all, {part} of it the model's."
    drawn = chart("speed", "Rows per second", partial(plot.speed, evaluation))
    return f"<p>{text(words)}</p>\n{drawn}"


def _size(evaluation: Evaluation) -> str:
    if evaluation.leaves is None and evaluation.model_bytes is None:
        return left_out("the model reports neither leaves nor memory")
    told = []
    charts = []
    if evaluation.leaves is not None:
        told.append(f"{count(evaluation.leaves)} leaves")
        charts.append(chart("leaves", "Leaves", partial(plot.leaves, evaluation)))
        if len(evaluation.curve) > 1:
            charts.append(
                chart("changes", "Changes of the tree", partial(plot.changes, evaluation))
            )
    if evaluation.model_bytes is not None:
        told.append(megabytes(evaluation.model_bytes))
        charts.append(chart("memory", "Memory", partial(plot.memory, evaluation)))
    return f'<p>In the end {" and ".join(told)}.</p>\n<div class="charts">{"".join(charts)}</div>'


def _tree(evaluation: Evaluation, picture: TreePicture | None, absent: str) -> str:
    return left_out(absent) if picture is None else render_tree(picture, evaluation.target)


def _importances(evaluation: Evaluation, model: Any, absent: str) -> str:
    looked_into = readable_part(model)
    if looked_into is None:
        return left_out(absent)
    shares = looked_into.feature_importances
    height = max(1.3, 0.55 + 0.2 * min(len(shares), MOST_BARS + 1))
    drawn = partial(plot.importances, shares)
    over_time = chart(
        "importances-over-time",
        "Over the stream",
        partial(plot.importances_over_time, evaluation),
    )
    made = chart("importances", "What it costs to get a feature wrong", drawn, height=height)
    made += over_time if len(evaluation.importances) > 1 else ""
    return (
        "<p>By how much squared errors would have grown lately, had each feature in turn had the "
        "value of another row, by splits and linear models alike"
        f"{'; the mean over targets' if evaluation.targets else ''}.</p>\n"
        f'<div class="charts">{made}</div>'
    )


def _refused(evaluation: Evaluation) -> str:
    refused = evaluation.refused
    if refused.count == 0:
        return '<p class="quiet">None: every row could be used.</p>'
    rows = [
        (text(reason), count(rows), text(share(rows, refused.count)))
        for reason, rows in refused.reasons.items()
    ]
    heads = [Column("why", numbers=False), Column("rows"), Column("share")]
    part = text(share(refused.count, evaluation.rows_read))
    drawn = chart("refused-rows", "Where in the stream", partial(plot.refused, evaluation))
    return (
        f"<p>{count(refused.count)} of {count(evaluation.rows_read)} rows ({part}) were left out "
        f'and not learned.</p>\n<div class="charts">{drawn}'
        f'<div class="scroll">{table(heads, rows)}</div></div>'
    )


def _settings(evaluation: Evaluation, model: Any, settings: Mapping[str, str]) -> str:
    tree = readable_part(model)
    parameters = {} if tree is None else tree.parameters
    versions = {name: metadata.version(name) for name in ("sapwood", "numpy", "matplotlib")}
    groups: dict[str, Mapping[Any, Any]] = {
        "Model": {"kind": evaluation.model, **{k: repr(v) for k, v in parameters.items()}},
        "Evaluation": {
            "stream": evaluation.stream,
            "target": evaluation.target,
            "fade": number(evaluation.fade, None),
            "window": f"{count(evaluation.window_rows)} rows",
            **{name: value for name, value in settings.items() if name not in parameters},
        },
        "Versions": {**versions, "Python": platform.python_version()},
    }
    heads = (Column("", numbers=False), Column("", numbers=False))
    tables = (
        f"<div>{table(heads, [(text(k), text(v)) for k, v in rows.items()], caption=name)}</div>"
        for name, rows in groups.items()
    )
    return f'<div class="side-by-side">{"".join(tables)}</div>'

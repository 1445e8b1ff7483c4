"""The report as a page of HTML: what it says, and in which order."""

import hashlib
import math
import platform
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from importlib import metadata, resources
from typing import Any

import numpy as np

from sapwood import plot
from sapwood.atomic import StrPath, write_atomically
from sapwood.evaluate.result import UNSCORED, Evaluation
from sapwood.plot.model import MOST_BARS, picture_of, tree_of
from sapwood.report.charts import chart
from sapwood.report.html import (
    ABSENT,
    Column,
    count,
    measured,
    megabytes,
    section,
    share,
    table,
    text,
    told_alike,
)
from sapwood.report.tree_view import render_tree
from sapwood.tree.view import TreePicture
from sapwood.tree.words import number, plain

__all__ = ["render", "verdict", "write_report"]

MOST_POINTS = 20  # of the curve that a table shows

TITLES = {
    "result": "Result",
    "error": "Error",
    "speed": "Speed",
    "size": "Size",
    "importances": "Importances",
    "refused": "Refused rows",
    "tree": "Tree",
    "settings": "Settings",
}


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
    model : HoeffdingTreeRegressor, optional
        The model as it is after the evaluation. Of any other model, or without one, the parts
        about the tree are left out.
    settings : mapping of str to str, optional
        What else is worth knowing about the run. Parameters of the model are told anyway.

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
    picture = picture_of(model)
    absent = "no model was given" if model is None else "the model is none of Sapwood's trees"
    parts = {
        "result": _result(evaluation),
        "error": _error(evaluation),
        "speed": _speed(evaluation),
        "size": _size(evaluation),
        "importances": _importances(picture, absent),
        "refused": _refused(evaluation),
        "tree": _left_out(absent) if picture is None else render_tree(picture, evaluation.target),
        "settings": _settings(evaluation, model, settings or {}),
    }
    made = {name: section(name, TITLES[name], body) for name, body in parts.items()}
    links = " ".join(f'<a href="#{name}">{title}</a>' for name, title in TITLES.items())
    middle = "".join(made[name] for name in ("speed", "size", "importances", "refused"))
    headline = f"{text(_short_name(evaluation.model))} on {text(evaluation.stream)}"
    main = (
        f'{made["result"]}{made["error"]}<div class="side-by-side">\n{middle}</div>\n'
        f"{made['tree']}{made['settings']}"
    )
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
<p class="kind">Sapwood · evaluation</p>
<h1>{headline}</h1>
<p>{_course(evaluation)}</p>
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


def _short_name(model: str) -> str:
    """Return the name of a class alone if its repr is given."""
    found = re.match(r"<(\w+)\(", model)
    return found[1] if found else model


def _left_out(why: str) -> str:
    return f'<p class="quiet">Left out: {why}.</p>'


def _course(evaluation: Evaluation) -> str:
    rows = evaluation.rows_predicted
    told = (
        f"Each of {count(rows)} rows was predicted, then learned." if rows else "No row was good."
    )
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
    if evaluation.rows_predicted == 0 or not math.isfinite(total.mae):
        return f"No prediction could be scored, so there is nothing to judge.{unscored}"
    target = plain(evaluation.target, 40)
    told = [f"On average a prediction of {target} was off by {measured(total.mae)}."]
    mean = f"always predicting the mean ({measured(evaluation.target_mean)})"
    if math.isnan(total.r2):
        told.append("The target does not vary, so there is nothing to compare this with.")
    elif total.r2 >= 0:
        percent = number(100 * total.r2, 4 if total.r2 > 0.99 else 3)
        told.append(f"The squared error is {percent} % below that of {mean}.")
    else:
        times = number(1 - total.r2, 3)
        told.append(f"The squared error is {times} times that of {mean}: worse than no model.")
    scored = evaluation.rows_predicted - evaluation.unscored
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
    rows = f"{count(evaluation.unscored)} of {count(evaluation.rows_predicted)} rows"
    first = plain(evaluation.first_unscored, 80)
    return f" Not scored are {rows}, whose {UNSCORED}; the first is {first}."


def _result(evaluation: Evaluation) -> str:
    total, refused = evaluation.total, evaluation.refused.count
    tiles = [
        ("MAE", measured(total.mae), "mean absolute error"),
        ("RMSE", measured(total.rmse), "root mean squared error"),
        ("R²", measured(total.r2), "1 is perfect, 0 is the mean"),
        ("Rows", count(evaluation.rows_read), "read"),
        ("Refused", count(refused), f"{text(share(refused, evaluation.rows_read))} of them"),
        ("Speed", _rate(evaluation.rows_per_second), "rows per second"),
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
    scored = evaluation.rows_predicted - evaluation.unscored
    names = [
        "all rows",
        f"faded <small>{_fading(evaluation.fade)}</small>",
        f"last {count(min(evaluation.window_rows, scored))} rows",
        "the mean alone",
    ]
    nan = math.nan
    columns = [
        told_alike([*(each.mae for each in found), nan]),
        told_alike([*(each.rmse for each in found), evaluation.target_deviation]),
        told_alike([*(each.r2 for each in found), 0.0]),
    ]
    unit = text(plain(evaluation.target, 40))
    heads = [Column("over", numbers=False), Column("MAE"), Column("RMSE"), Column("R²")]
    made = table(heads, zip(names, *columns, strict=True), caption=f"Errors in units of {unit}")
    return f'<div class="wide scroll">{made}</div>'


def _fading(fade: float) -> str:
    if not 0 < fade < 1:
        return ""
    return f"a row counts half after {count(math.log(0.5) / math.log(fade))} more"


def _row_table(evaluation: Evaluation) -> str:
    rows = [
        ("read", count(evaluation.rows_read)),
        ("predicted", count(evaluation.rows_predicted)),
        ("learned", count(evaluation.rows_learned)),
        ("refused", count(evaluation.refused.count)),
        ("not scored", count(evaluation.unscored)),
    ]
    heads = (Column("rows", numbers=False), Column("count"))
    return f'<div class="scroll">{table(heads, rows, caption="What became of the rows")}</div>'


def _error(evaluation: Evaluation) -> str:
    names: dict[plot.Measure, str] = {
        "mae": "Mean absolute error (MAE)",
        "rmse": "Root mean squared error (RMSE)",
        "r2": "R², against the mean alone",
    }
    charts = "\n".join(
        chart(name, title, partial(plot.learning_curve, evaluation, name))
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
    heads = ["rows", "MAE", "faded", "RMSE", "faded", "R²", "faded", "leaves", "MB", "rows/s"]
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
        return _left_out("no time was measured")
    took = f"{measured(evaluation.seconds, 3)} s"
    part = share(evaluation.model_seconds, evaluation.seconds)
    words = f"{took} in all, {part} of it the model's."
    drawn = chart("speed", "Rows per second", partial(plot.speed, evaluation))
    return f"<p>{text(words)}</p>\n{drawn}"


def _size(evaluation: Evaluation) -> str:
    if evaluation.leaves is None and evaluation.model_bytes is None:
        return _left_out("the model tells neither its leaves nor its memory")
    told = []
    charts = []
    if evaluation.leaves is not None:
        told.append(f"{count(evaluation.leaves)} leaves")
        charts.append(chart("leaves", "Leaves", partial(plot.leaves, evaluation)))
    if evaluation.model_bytes is not None:
        told.append(megabytes(evaluation.model_bytes))
        charts.append(chart("memory", "Memory", partial(plot.memory, evaluation)))
    return f'<p>In the end {" and ".join(told)}.</p>\n<div class="charts">{"".join(charts)}</div>'


def _importances(picture: TreePicture | None, absent: str) -> str:
    if picture is None:
        return _left_out(absent)
    bars = min(len(picture.names), MOST_BARS + 1)
    height = max(1.3, 0.55 + 0.2 * bars)
    drawn = partial(plot.importances, picture)
    return (
        "<p>What splits on each feature achieved. Linear models in the leaves may use others.</p>\n"
        + chart("importances", "Share of the error removed", drawn, height=height)
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
    tree = tree_of(model)
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

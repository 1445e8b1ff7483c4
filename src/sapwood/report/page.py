"""The report as a page of HTML: its parts, and their order."""

import hashlib
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from sapwood.evaluate.result import Evaluation
from sapwood.lags.decomposition import Decomposition
from sapwood.plot.model import picture_of
from sapwood.report.drift import render_drift
from sapwood.report.forecast import render_decomposition, render_forecast
from sapwood.report.horizons import render_horizons, render_hours
from sapwood.report.html import section, text
from sapwood.report.hybrid import render_hybrid
from sapwood.report.intervals import render_intervals, render_target_intervals
from sapwood.report.members import render_members
from sapwood.report.next_steps import render_next_steps
from sapwood.report.result import render_result, render_rows, summary_of
from sapwood.report.rows import render_columns, render_predictions, render_residuals
from sapwood.report.rules import render_rules
from sapwood.report.sections import (
    render_error,
    render_importances,
    render_rejected,
    render_settings,
    render_size,
    render_speed,
)
from sapwood.report.series import render_series
from sapwood.report.targets import render_shared_tree, render_target_curves, render_targets
from sapwood.report.titles import title_of
from sapwood.report.tree_view import render_tree
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = ["render", "whole_page", "write_report"]

TITLES = {
    "result": "Result",
    "horizons": "Horizons",
    "series": "Series",
    "forecast": "Forecast",
    "decomposition": "Level, calendar and lags",
    "predictions": "Predictions",
    "intervals": "Prediction intervals",
    "error": "Error over time",
    "residuals": "Residuals",
    "drift": "Drift events",
    "size": "Model size",
    "speed": "Throughput",
    "importances": "Feature importance",
    "rejected": "Rejected rows",
    "columns": "Columns",
    "hybrid": "Online and batch model",
    "members": "Ensemble members",
    "rules": "Rules",
    "tree": "Tree",
    "next": "Next steps",
    "settings": "Settings",
}
"""The parts of a page in order; those that have nothing to show are left out."""
MIDDLE = ("size", "speed", "importances", "rejected")
"""Parts that stand next to each other if the page is wide."""


def write_report(
    path: StrPath,
    evaluation: Evaluation,
    model: Any = None,
    *,
    settings: Mapping[str, str] | None = None,
    created: datetime | None = None,
    horizons: Sequence[Mapping[str, Any]] = (),
    decomposition: Decomposition | None = None,
) -> None:
    """Write the report of an evaluation as one self-contained HTML file.

    Parameters
    ----------
    path : str or path-like
        Where to write; an old file is replaced at once.
    evaluation : Evaluation
        What to report.
    model : object, optional
        The model as it is after the evaluation. Without one, or if it is not one of Sapwood's,
        there are no parts on its trees.
    settings : mapping of str to str, optional
        Further settings of the run to list. Parameters of the model are included anyway.
    created : datetime, optional
        The time of creation that the page states, with a time zone; the present by default.
    horizons : sequence of mappings
        Scores of each horizon, as `sapwood evaluate --horizon --json` prints them.
    decomposition : Decomposition, optional
        What the last predictions consist of: `sapwood.lags.decomposition.decompose`.

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
    created = datetime.now(UTC) if created is None else created
    made = render(
        *(evaluation, model),
        settings=settings,
        created=created,
        horizons=horizons,
        decomposition=decomposition,
    )
    write_atomically(path, made.encode())


def render(
    evaluation: Evaluation,
    model: Any = None,
    *,
    settings: Mapping[str, str] | None = None,
    created: datetime | None = None,
    horizons: Sequence[Mapping[str, Any]] = (),
    decomposition: Decomposition | None = None,
) -> str:
    """Return the HTML that `write_report` writes, without writing a file.

    Parameters
    ----------
    evaluation, model, settings, horizons, decomposition
        As for `write_report`.
    created : datetime, optional
        The time of creation; none is stated by default.
    """
    parts = (_target_parts if evaluation.targets else _parts)(evaluation, model)
    parts |= {
        "horizons": f"{render_horizons(horizons)}{render_hours(evaluation.seasonal)}"
        if horizons
        else None,
        "series": render_series(evaluation.series),
        "forecast": render_forecast(model) if horizons else None,
        "decomposition": render_decomposition(decomposition),
        "rejected": render_rejected(evaluation),
        "columns": render_columns(evaluation.columns) if evaluation.columns else None,
        "hybrid": render_hybrid(model),
        "members": render_members(evaluation, model),
        "importances": render_importances(evaluation, model),
        "next": render_next_steps(evaluation, model),
        "settings": render_settings(evaluation, model, settings or {}),
    }
    known = [(name, title, parts.get(name)) for name, title in TITLES.items()]
    words = summary_of(evaluation, created)
    return whole_page("evaluation", text(title_of(evaluation)), words, known, MIDDLE)


def _parts(evaluation: Evaluation, model: Any) -> dict[str, str | None]:
    """Return the parts of a page of one target."""
    picture = picture_of(model)
    return {
        "result": render_result(evaluation),
        "predictions": render_predictions(evaluation),
        "intervals": render_intervals(evaluation, model),
        "error": render_error(evaluation),
        "residuals": render_residuals(evaluation),
        "drift": render_drift(evaluation),
        "size": render_size(evaluation),
        "speed": render_speed(evaluation),
        "rules": render_rules(evaluation, model),
        "tree": None if picture is None else render_tree(picture, evaluation.target),
    }


def _target_parts(evaluation: Evaluation, model: Any) -> dict[str, str | None]:
    """Return the parts of a page of several targets."""
    picture = picture_of(model)
    first = next(iter(evaluation.targets.values()))
    shared = replace(first, leaves=evaluation.leaves, model_bytes=evaluation.model_bytes)
    words = evaluation.headline[:1].upper() + evaluation.headline[1:]
    return {
        "result": f'<p class="verdict">{text(words)}.</p>\n'
        f"{render_targets(evaluation)}{render_rows(evaluation)}",
        "intervals": render_target_intervals(evaluation, model),
        "error": render_target_curves(evaluation),
        "drift": render_drift(evaluation),
        "size": render_size(shared),
        "tree": None if picture is None else render_shared_tree(picture),
    }


def whole_page(
    kind: str,
    headline: str,
    words: str,
    parts: Iterable[tuple[str, str, str | None]],
    middle: Collection[str] = (),
) -> str:
    """Return a page of parts; those that have nothing to show are left out.

    - `headline`, `words`: its title, and what stands below, as pieces of a page.
    - `parts`: the name, the title and the body of each.
    - `middle`: parts that stand next to each other if the page is wide.
    """
    known = [(name, title, body) for name, title, body in parts if body]
    links = " ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in known)
    made = {name: section(name, title, body) for name, title, body in known}
    if together := [name for name in made if name in middle]:
        look = "side-by-side" if "speed" in made else "side-by-side without-speed"
        inside = "".join(made[name] for name in together)
        made[together[0]] = f'<div class="{look}">\n{inside}</div>\n'
        made = {name: each for name, each in made.items() if name not in together[1:]}
    main = "".join(made.values())
    css, script = _file("page.css"), _file("page.js")
    # Nothing is fetched, and no script runs but this one.
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
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

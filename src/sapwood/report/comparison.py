"""The report of a comparison: who is best, on which stream, and how errors went on."""

import math
from collections.abc import Mapping
from functools import partial

from matplotlib.axes import Axes

from sapwood import plot
from sapwood.evaluate.result import BASELINES, Evaluation
from sapwood.formatting import plain
from sapwood.plot.style import looks_of
from sapwood.report.charts import ROLES, chart
from sapwood.report.html import ABSENT, Column, count, left_out, measured, section, table, text
from sapwood.report.page import file_name, whole_page
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = ["render_comparison", "write_comparison"]

Results = Mapping[str, Mapping[str, Evaluation | str]]
"""For each stream and model what was found, or why it failed."""

TITLES: dict[plot.Measure, str] = {"mae": "MAE", "rmse": "RMSE", "r2": "R²"}
MOST_CURVES = 7  # that eyes tell apart


def write_comparison(
    path: StrPath,
    results: Results,
    ranks: Mapping[str, float],
    *,
    measure: plot.Measure = "rmse",
    verdict: str = "",
) -> None:
    """Write the report of a comparison: one HTML file that needs nothing else.

    Parameters
    ----------
    path : str or path-like
        Where to write; an old file is replaced at once.
    results : mapping of streams to mappings of models to evaluations
        What was found; a text in place of an evaluation says why a model failed.
    ranks : mapping of str to float
        The average rank of each model, best first.
    measure : {"mae", "rmse", "r2"}
        What they are ranked by.
    verdict : str
        Whether ranks differ.

    Examples
    --------
    >>> import os, sapwood, tempfile
    >>> from sapwood import streams
    >>> from sapwood.evaluate import prequential
    >>> from sapwood.evaluate.baselines import LastValue
    >>> models = {"tree": sapwood.HoeffdingTreeRegressor(), "last": LastValue()}
    >>> stream = streams.friedman(rows=3000)
    >>> found = {"friedman": {name: prequential(model, stream) for name, model in models.items()}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     write_comparison(path, found, {"tree": 1.0, "last": 2.0})
    ...     os.path.getsize(path) > 20_000
    True
    """
    write_atomically(
        path, render_comparison(results, ranks, measure=measure, verdict=verdict).encode()
    )


def render_comparison(
    results: Results,
    ranks: Mapping[str, float],
    *,
    measure: plot.Measure = "rmse",
    verdict: str = "",
) -> str:
    """Return what `write_comparison` would write.

    Parameters
    ----------
    results, ranks, measure, verdict
        As for `write_comparison`.
    """
    best = next(iter(ranks))
    parts = [("ranks", "Ranks", _ranks(results, ranks, measure, verdict))]
    for place, (stream, row) in enumerate(results.items(), 1):
        title = text(plain(file_name(stream), 60))
        parts.append((f"stream-{place}", title, _of_stream(f"stream-{place}", row, measure)))
    links = " ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in parts)
    main = "".join(section(*part) for part in parts)
    headline = f"{len(ranks)} models on {_some(len(results), 'stream')}"
    words = f"Best on average by {TITLES[measure]}: <b>{text(best)}</b>. "
    words += "Each row was predicted, then learned."
    return whole_page("comparison", headline, words, links, main)


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _value(found: Evaluation | str, measure: plot.Measure) -> float:
    if isinstance(found, str) or found.unscored:
        return math.nan
    return float(getattr(found.total, measure))


def _ranks(
    results: Results, ranks: Mapping[str, float], measure: plot.Measure, verdict: str
) -> str:
    heads = [
        Column("model", numbers=False),
        Column("average rank"),
        *(Column(text(plain(file_name(stream), 24))) for stream in results),
        Column("seconds"),
    ]
    rows = []
    for model, rank in ranks.items():
        cells = []
        for row in results.values():
            value = _value(row[model], measure)
            known = [_value(each, measure) for each in row.values()]
            known = [each for each in known if math.isfinite(each)]
            best = (max if measure == "r2" else min)(known, default=math.nan)
            told = "failed" if isinstance(row[model], str) else measured(value)
            cells.append(f"<b>{told}</b>" if value == best else told)
        took = [each.seconds for row in results.values() if not isinstance(each := row[model], str)]
        rows.append((text(model), f"{rank:.2f}", *cells, measured(sum(took), 3)))
    made = table(heads, rows, caption=f"{TITLES[measure]} over all rows")
    return f'<div class="scroll models">{made}</div>\n<p class="after">{text(verdict, 500)}</p>'


def _of_stream(name: str, row: Mapping[str, Evaluation | str], measure: plot.Measure) -> str:
    known = {model: found for model, found in row.items() if not isinstance(found, str)}
    failed = [
        f"<p>{text(model)} failed: {text(words, 400)}</p>"
        for model, words in row.items()
        if isinstance(words, str)
    ]
    if not known:
        return "".join([*failed, left_out("no model went to the end")])
    order = sorted(known, key=lambda model: _order(known[model], measure))
    curves = {model: known[model] for model in order[:MOST_CURVES] if len(known[model].curve)}
    charts = "".join(
        chart(f"{name}-{each}", TITLES[each], partial(_draw_curves, curves, each))
        for each in TITLES
        if curves
    )
    heads = [
        Column("model", numbers=False),
        *(Column(title) for title in TITLES.values()),
        Column("bias"),
        Column("rows per second"),
        Column("leaves"),
    ]
    rows = [
        (
            text(model),
            *(measured(getattr(known[model].total, each)) for each in TITLES),
            measured(known[model].bias, 3),
            count(float(f"{known[model].steady_rows_per_second:.3g}")),
            ABSENT if (leaves := known[model].leaves) is None else count(leaves),
        )
        for model in order
    ]
    first = known[order[0]]
    rows += [
        (
            f"<i>{BASELINES[each]}</i>",
            *(measured(getattr(rival.total, measure)) for measure in TITLES),
            *[ABSENT] * 3,
        )
        for each, rival in first.baselines.items()
    ]
    words = f"{text(order[0])}: {text(first.headline)}. {count(first.rows_scored)} rows."
    above = "".join([*failed, _legend(list(curves)) if curves else ""])
    shown = f'<div class="charts">{charts}</div>\n' if charts else ""
    return (
        f"<p>{words}</p>\n{above}{shown}"
        f'<div class="scroll models">{table(heads, rows)}</div>'
        f"{_of_targets({model: known[model] for model in order}, measure)}"
    )


def _of_targets(known: Mapping[str, Evaluation], measure: plot.Measure) -> str:
    """Return what models reached of each of several targets; nothing of one."""
    names = next(iter(known.values())).targets
    if not names:
        return ""
    rows = [
        (
            text(name, 40),
            *(measured(_value(each.targets[name], measure)) for each in known.values()),
        )
        for name in names
    ]
    heads = [Column("target", numbers=False), *(Column(text(model)) for model in known)]
    caption = f"{TITLES[measure]} of each target; above, means of errors in units of deviations"
    return f'<div class="scroll models">{table(heads, rows, caption=caption)}</div>'


def _draw_curves(curves: Mapping[str, Evaluation], measure: plot.Measure, ax: Axes) -> None:
    legend = plot.learning_curve(curves, measure, ax).get_legend()
    if legend is not None:
        legend.remove()  # one is above all charts


def _legend(models: list[str]) -> str:
    looks = looks_of(models)
    named = "".join(
        f'<span><i style="background:{ROLES.get(looks[model].colour, looks[model].colour)}"></i>'
        f"{text(model, 60)}</span>"
        for model in models
    )
    return (
        f'<p class="legend">{named}<span>solid: exponentially weighted, dashed: all rows</span></p>'
    )


def _order(found: Evaluation, measure: plot.Measure) -> float:
    value = _value(found, measure)
    if math.isnan(value):
        return math.inf
    return -value if measure == "r2" else value

"""The report of a comparison of classifiers: ranks, and the metrics of each stream."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from sapwood.evaluate.class_scores import CLASS_METRICS
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.evaluate.ranking import Ranking
from sapwood.formatting import plain
from sapwood.plot.style import looks_of
from sapwood.report.charts import chart
from sapwood.report.html import Words, measured, section, table, text
from sapwood.report.page import whole_page
from sapwood.report.titles import names_of_models, stream_name
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = ["render_class_comparison", "write_class_comparison"]

Results = Mapping[str, Mapping[str, ClassEvaluation | str]]
"""For each stream and model what was found, or why it failed."""


def write_class_comparison(
    path: StrPath, results: Results, ranking: Ranking, measure: str, verdict: str = ""
) -> None:
    """Write the report of a comparison of classifiers: one HTML file that needs nothing else.

    - `path`: where to write; an old file is replaced at once.
    - `results`: what was found; a text in place of an evaluation is the reason why a model failed.
    - `measure`: what they are ranked by, a key of `CLASS_METRICS`.
    """
    page = render_class_comparison(results, ranking, measure, verdict)
    write_atomically(path, page.encode())


def render_class_comparison(
    results: Results, ranking: Ranking, measure: str, verdict: str = ""
) -> str:
    """Return what `write_class_comparison` would write."""
    names = names_of_models(ranking.models)
    title = CLASS_METRICS[measure].strip()
    parts = [("ranks", "Ranks", _ranks(results, ranking, measure, verdict))]
    for place, (stream, row) in enumerate(results.items(), 1):
        name = f"stream-{place}"
        parts.append((name, text(plain(stream_name(stream), 60)), _of_stream(name, row, names)))
    links = " ".join(f'<a href="#{name}">{own}</a>' for name, own, _ in parts)
    main = "".join(section(*part) for part in parts)
    best = text(names[ranking.models[0]])
    words = f"Best on average by {text(title)}: <b>{best}</b>."
    return whole_page("comparison", f"{len(names)} classifiers", words, links, main)


def _ranks(results: Results, ranking: Ranking, measure: str, verdict: str) -> str:
    """Return the average ranks, the measure on each stream, and whether ranks differ."""
    names = names_of_models(ranking.models)
    streams = [text(plain(stream_name(stream), 24)) for stream in results]
    heads = [Words(""), "average rank", *streams, "seconds"]
    rows = []
    for model, place in zip(ranking.models, ranking.ranks, strict=True):
        found = [row[model] for row in results.values()]
        known = [each for each in found if not isinstance(each, str)]
        cells = [_cell(each, measure) for each in found]
        seconds = measured(sum(each.seconds for each in known), 3)
        rows.append((text(names[model], 60), f"{place:.2f}", *cells, seconds))
    caption = f"{CLASS_METRICS[measure].strip()} over all rows"
    made = f'<div class="scroll models">{table(heads, rows, caption=caption)}</div>'
    words = text(f"{verdict[:1].upper()}{verdict[1:]}.", 500) if verdict else ""
    return f'{made}\n<p class="after">{words}</p>'


def _cell(found: ClassEvaluation | str, measure: str) -> str:
    return "failed" if isinstance(found, str) else measured(found.scores.metrics()[measure])


def _of_stream(
    name: str, row: Mapping[str, ClassEvaluation | str], names: Mapping[str, str]
) -> str:
    """Return all metrics of all models on a stream, and their course."""
    heads = [Words(""), *(text(names[model], 40) for model in row)]
    rows = [
        (text(title.strip()), *(_cell(found, metric) for found in row.values()))
        for metric, title in CLASS_METRICS.items()
    ]
    failed = [
        f"<p>{text(names[model], 60)} failed: {text(found, 300)}</p>"
        for model, found in row.items()
        if isinstance(found, str)
    ]
    curves = {model: found for model, found in row.items() if not isinstance(found, str)}
    charts = "".join(
        chart(f"{name}-{field}", title, _draw_curves, curves, names, field)
        for field, title in (
            ("accuracy_window", "Accuracy of the last rows"),
            ("log_loss", "Log-loss"),
        )
        if any(len(found.scores.curve) > 1 for found in curves.values())
    )
    made = table(heads, rows, caption="Metrics over all rows")
    return f'<div class="scroll models">{made}</div>{"".join(failed)}<div class="charts">{charts}</div>'


def _draw_curves(
    curves: Mapping[str, ClassEvaluation], names: Mapping[str, str], field: str, ax: Axes
) -> None:
    looks = looks_of(list(names))
    for model, found in curves.items():
        curve = found.scores.curve
        ax.plot(curve["row"], curve[field], color=looks[model].colour, label=names[model])
    ax.set_xlabel("rows")
    ax.legend(frameon=False)

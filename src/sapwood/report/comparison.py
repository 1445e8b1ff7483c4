"""The report of a comparison: which model is best on which stream, and their errors over time."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from sapwood import plot
from sapwood.evaluate.class_scores import CLASS_METRICS
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.evaluate.result import BASELINES, Evaluation
from sapwood.formatting import plain
from sapwood.plot.clock import Along, along_of
from sapwood.plot.style import Look, looks_of
from sapwood.report.charts import ROLES, chart
from sapwood.report.html import (
    ABSENT,
    Words,
    charts,
    count,
    grouped_table,
    measured,
    rate,
    scrolled,
    text,
)
from sapwood.report.page import whole_page
from sapwood.report.titles import names_of_models, stream_name
from sapwood.storage.atomic import StrPath, write_atomically

__all__ = ["render_comparison", "write_comparison"]

Found = Evaluation | ClassEvaluation | str
"""What was found of a model on a stream, or why it failed."""
Results = Mapping[str, Mapping[str, Any]]
"""For each stream and model what was found."""

TITLES: dict[plot.Measure, str] = {"mae": "MAE", "rmse": "RMSE", "r2": "R²"}
CLASS_TITLES = CLASS_METRICS
FEW_STREAMS = 3  # whose names fit above the columns of a table
CLASS_CURVES = {"accuracy_window": "Accuracy of the last rows", "log_loss": "Log-loss"}
LARGEST_IS_BEST = ("r2", "accuracy", "balanced_accuracy", "kappa")
MOST_CURVES = 7  # that eyes distinguish


class _Named(NamedTuple):
    """The models of a comparison, best first, with the names and looks that they have throughout."""

    names: Mapping[str, str]
    looks: Mapping[str, Look]

    def cell(self, model: str) -> str:
        """Return a model for a table: its colour and its name."""
        colour = self.looks[model].colour
        swatch = f'<i class="swatch" style="background:{ROLES.get(colour, colour)}"></i>'
        return f"{swatch}{text(self.names[model], 60)}"


def write_comparison(
    path: StrPath,
    results: Results,
    ranks: Mapping[str, float],
    *,
    measure: str = "rmse",
    verdict: str = "",
    created: datetime | None = None,
) -> None:
    """Write the report of a comparison: one HTML file that needs nothing else.

    - `path`: where to write; an old file is replaced at once.
    - `results`: what was found, of numbers or of classes; a text in place of an evaluation is the
      reason why a model failed.
    - `ranks`: the average rank of each model, best first.
    - `measure`: what they are ranked by: "mae", "rmse" or "r2", or a key of `CLASS_METRICS`.
    - `created`: the time of creation that the page states, with a time zone; the present by
      default.

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
    created = datetime.now(UTC) if created is None else created
    made = render_comparison(results, ranks, measure=measure, verdict=verdict, created=created)
    write_atomically(path, made.encode())


def render_comparison(
    results: Results,
    ranks: Mapping[str, float],
    *,
    measure: str = "rmse",
    verdict: str = "",
    created: datetime | None = None,
) -> str:
    """Return what `write_comparison` would write.

    - `created`: the time of creation; none is stated by default.
    """
    named = _Named(names_of_models(ranks), looks_of(list(ranks)))
    names = _streams(list(results))
    of_stream = _classes_of_stream if measure in CLASS_TITLES else _of_stream
    parts = [("ranks", "Ranks", _ranks(results, ranks, measure, verdict, named))]
    for place, (stream, row) in enumerate(results.items(), 1):
        name, title = f"stream-{place}", text(plain(names[stream], 60))
        parts.append((name, title, of_stream(name, row, measure, named)))
    on = text(next(iter(names.values()))) if len(names) == 1 else f"{len(names)} streams"
    best = text(named.names[next(iter(ranks))])
    words = f"Best on average by {text(_title(measure))}: <b>{best}</b>.{_protocol(results)}"
    if created is not None:
        words += f" Created {created.astimezone(UTC):%Y-%m-%d %H:%M} UTC."
    kind = "classifiers" if measure in CLASS_TITLES else "models"
    return whole_page("comparison", f"{len(ranks)} {kind} on {on}", words, parts)


def _title(measure: str) -> str:
    titles: dict[str, str] = {str(name): title for name, title in TITLES.items()}
    return (titles | CLASS_TITLES)[measure]


def _streams(streams: Sequence[str]) -> dict[str, str]:
    """Return streams in words; as they were typed where two would have the same name."""
    named = {stream: stream_name(stream) for stream in streams}
    known = list(named.values())
    return {each: name if known.count(name) == 1 else each for each, name in named.items()}


def _protocol(results: Results) -> str:
    """Return how rows were evaluated, and when their labels arrived, if evaluations know that."""
    found = [
        each for row in results.values() for each in row.values() if isinstance(each, Evaluation)
    ]
    if not found:
        return ""
    delays = {each.label_delay for each in found}
    if delays == {None}:
        return " Each row was predicted first, and learned before the next."
    late = ", ".join(sorted(each for each in delays if each is not None))
    return f" Each row was predicted when it arrived; its label arrived {text(late)} later."


def _value(found: Found, measure: str) -> float:
    if isinstance(found, ClassEvaluation):
        return found.scores.metrics()[measure]
    if isinstance(found, str) or found.unscored:
        return math.nan
    return float(getattr(found.total, measure))


def _cell(found: Found, measure: str) -> str:
    return "failed" if isinstance(found, str) else measured(_value(found, measure))


def _failures(row: Mapping[str, Found], named: _Named) -> str:
    return "".join(
        f"<p>{text(named.names[model])} failed: {text(words, 400)}</p>"
        for model, words in row.items()
        if isinstance(words, str)
    )


def _ranks(
    results: Results, ranks: Mapping[str, float], measure: str, verdict: str, named: _Named
) -> str:
    """Return the average ranks, the measure on each stream, and whether ranks differ."""
    names = _streams(list(results))
    most = 60 if len(results) <= FEW_STREAMS else 24
    streams = (text(plain(names[stream], most)) for stream in results)
    heads = [Words(""), "average rank", *streams, "seconds"]
    rows = []
    for model, rank in ranks.items():
        cells = []
        for row in results.values():
            known = [_value(each, measure) for each in row.values()]
            known = [each for each in known if math.isfinite(each)]
            best = (max if measure in LARGEST_IS_BEST else min)(known, default=math.nan)
            shown = _cell(row[model], measure)
            cells.append(f"<b>{shown}</b>" if _value(row[model], measure) == best else shown)
        found = (row[model] for row in results.values())
        took = sum(each.seconds for each in found if not isinstance(each, str))
        rows.append((named.cell(model), f"{rank:.2f}", *cells, measured(took, 3)))
    groups = {"Models": rows, "Baselines": _baselines(results, measure, ranks)}
    groups = {title: own for title, own in groups.items() if own}
    made = grouped_table(heads, groups, caption=f"{_title(measure)} over all rows")
    words = text(f"{verdict[:1].upper()}{verdict[1:]}.", 500) if verdict else ""
    return f'<div class="scroll models">{made}</div>\n<p class="after">{words}</p>'


def _baselines(results: Results, measure: str, compared: Collection[str]) -> list[tuple[str, ...]]:
    """Return the errors of baselines that are not compared as models, on each stream."""
    found = [
        next((each.baselines for each in row.values() if isinstance(each, Evaluation)), {})
        for row in results.values()
    ]
    return [
        (
            words,
            ABSENT,
            *(
                measured(getattr(own[name].total, measure)) if name in own else ABSENT
                for own in found
            ),
            ABSENT,
        )
        for name, words in BASELINES.items()
        if name not in compared and any(name in own for own in found)
    ]


def _of_stream(name: str, row: Mapping[str, Evaluation | str], measure: str, named: _Named) -> str:
    known = {model: found for model, found in row.items() if not isinstance(found, str)}
    failed = _failures(row, named)
    if not known:
        return failed
    order = sorted(known, key=lambda model: _order(known[model], measure))
    curves = {model: known[model] for model in order[:MOST_CURVES] if len(known[model].curve)}
    along: Along = "rows"
    if all(along_of(each) == "time" for each in curves.values()):
        along = "time"
    drawn = [
        chart(f"{name}-{each}", TITLES[each], _draw_curves, curves, each, along, named)
        for each in TITLES
        if curves
    ]
    heads = [Words("model"), *TITLES.values(), "bias", "rows per second", "leaves"]
    rows = [
        (
            named.cell(model),
            *(measured(getattr(known[model].total, each)) for each in TITLES),
            measured(known[model].bias, 3),
            rate(known[model].steady_rows_per_second),
            ABSENT if (leaves := known[model].leaves) is None else count(leaves),
        )
        for model in order
    ]
    first = known[order[0]]
    words = (
        f"{text(named.names[order[0]])}: {text(first.headline)}. {count(first.rows_scored)} rows."
    )
    legend = _legend(list(curves), named) if curves else ""
    shown = f"{charts(*drawn)}\n" if drawn else ""
    return (
        f"<p>{words}</p>\n{failed}{legend}{shown}"
        f"{scrolled(heads, rows, kind='models')}"
        f"{_of_targets({model: known[model] for model in order}, measure, named)}"
    )


def _of_targets(known: Mapping[str, Evaluation], measure: str, named: _Named) -> str:
    """Return the errors of models for each of several targets; nothing for one."""
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
    heads = [Words("target"), *(text(named.names[model]) for model in known)]
    caption = (
        f"{_title(measure)} of each target; above, means of errors in units of standard deviations"
    )
    return scrolled(heads, rows, caption=caption, kind="models")


def _draw_curves(
    curves: Mapping[str, Evaluation],
    measure: plot.Measure,
    along: Along,
    named: _Named,
    ax: Axes,
) -> None:
    shown = {named.names[model]: found for model, found in curves.items()}
    looks = {named.names[model]: named.looks[model] for model in curves}
    legend = plot.learning_curve(shown, measure, ax, along, looks).get_legend()
    if legend is not None:
        legend.remove()  # one is above all charts


def _legend(models: list[str], named: _Named) -> str:
    entries = "".join(f"<span>{named.cell(model)}</span>" for model in models)
    ways = "solid: exponentially weighted, dashed: all rows"
    return f'<p class="legend">{entries}<span>{ways}</span></p>'


def _order(found: Evaluation, measure: str) -> float:
    value = _value(found, measure)
    if math.isnan(value):
        return math.inf
    return -value if measure == "r2" else value


def _classes_of_stream(
    name: str, row: Mapping[str, ClassEvaluation | str], measure: str, named: _Named
) -> str:
    """Return all metrics of all classifiers on a stream, and their course."""
    heads = [Words(""), *(text(named.names[model], 40) for model in row)]
    rows = [
        (text(title), *(_cell(found, metric) for found in row.values()))
        for metric, title in CLASS_TITLES.items()
    ]
    curves = {model: found for model, found in row.items() if not isinstance(found, str)}
    drawn = [
        chart(f"{name}-{field}", title, _draw_class_curves, curves, named, field)
        for field, title in CLASS_CURVES.items()
        if any(len(found.scores.curve) > 1 for found in curves.values())
    ]
    made = scrolled(heads, rows, caption="Metrics over all rows", kind="models")
    return f"{made}{_failures(row, named)}{charts(*drawn)}"


def _draw_class_curves(
    curves: Mapping[str, ClassEvaluation], named: _Named, field: str, ax: Axes
) -> None:
    for model, found in curves.items():
        curve, colour = found.scores.curve, named.looks[model].colour
        ax.plot(curve["row"], curve[field], color=colour, label=named.names[model])
    ax.set_xlabel("rows")
    ax.legend(frameon=False)

"""What to try next, by what an evaluation has found: at most a few suggestions."""

from collections.abc import Iterator
from typing import Any

from sapwood.evaluate.result import BASELINES, Evaluation
from sapwood.model import readable_part
from sapwood.plot.clock import along_of
from sapwood.report.html import count, text

__all__ = ["render_next_steps"]

MOST = 4
OFF = 0.03  # by which coverage may differ from the nominal level
BIASED = 0.1  # of the mean absolute error


def render_next_steps(evaluation: Evaluation, model: Any) -> str:
    """Return a list of suggestions, the most urgent first."""
    found = [*_faults(evaluation), *_options(evaluation, model)][:MOST]
    return f"<ul>{''.join(f'<li>{each}</li>' for each in found)}</ul>"


def _faults(evaluation: Evaluation) -> Iterator[str]:
    """Yield how to repair what is wrong."""
    if evaluation.rejected.count:
        yield (
            f"Look at the {count(evaluation.rejected.count)} rejected rows: "
            "<code>--bad-rows FILE</code> writes them to a file."
        )
    best = evaluation.best_baseline
    if best is not None and evaluation.total.rmse >= evaluation.baselines[best].total.rmse:
        yield (
            f"The model is not better than {text(BASELINES[best])}. Check that the features are known "
            "before the target, and add lag features: <code>--lags 1,24</code>."
        )
    for name, own in (evaluation.targets or {"": evaluation}).items():
        levels = {} if own.intervals is None else own.intervals.levels
        for level, scores in levels.items():
            if abs(scores.faded.coverage - level) > OFF:
                of = f" of {text(name, 40)}" if name else ""
                yield (
                    f"Recent coverage{of} is {scores.faded.coverage:.2f} at a nominal level of "
                    f"{level:g}: the stream may have changed. Look for drift events."
                )
    if evaluation.total.mae > 0 and abs(evaluation.bias) > BIASED * evaluation.total.mae:
        side = "high" if evaluation.bias > 0 else "low"
        yield f"Predictions are too {side} on average: look for drift, and at errors by category."


def _options(evaluation: Evaluation, model: Any) -> Iterator[str]:
    """Yield what the model does not use yet."""
    name = evaluation.model
    timed = along_of(next(iter(evaluation.targets.values()), evaluation)) == "time"
    if evaluation.drift_events:
        yield "Check the data around the drift events: <code>--events FILE</code> writes them to a file."
        if "Forest" not in name and "Adaptive" not in name:
            yield "Try a model that adapts to drift: <code>-m adaptive</code> or <code>-m forest</code>."
    if timed and "LaggedModel" not in name:
        yield "Rows have times: try lag features with <code>--lags 1,24,168</code>."
    if "HoeffdingTreeRegressor" in name and "of river" not in name:
        yield "A forest is usually more accurate than one tree: <code>-m forest</code>."
    if evaluation.intervals is None and not evaluation.targets:
        yield "Add prediction intervals: <code>--interval 0.9</code>."
    if evaluation.drift_events is None and not evaluation.targets:
        yield "Watch for concept drift: <code>--monitor</code>."
    if readable_part(model) is not None:
        yield (
            "Save the model with <code>--save FILE</code>, and serve its predictions with "
            "<code>sapwood serve FILE</code>."
        )

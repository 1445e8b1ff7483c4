"""The part of a report about several targets: a table of all, and curves of each."""

from html import escape

from sapwood import plot
from sapwood.evaluate.result import Evaluation
from sapwood.inspect.view import TreePicture, to_text
from sapwood.plot.clock import along_of
from sapwood.report.charts import chart
from sapwood.report.html import ABSENT, Words, charts, count, measured, table, text

__all__ = ["render_shared_tree", "render_target_curves", "render_targets"]

MOST_CURVES = 16  # targets whose curves are drawn
DEEPEST = 6


def render_targets(evaluation: Evaluation) -> str:
    """Return a table of the errors of each target, and their means."""
    last = f"last {count(evaluation.window_rows)}"
    heads = [Words("target"), "rows", "MAE", "RMSE", "R²", "R², exp. weighted", f"R², {last}"]
    heads += ["bias", "RMSE of the best baseline"]
    rows = [
        (
            text(name),
            count(own.rows_scored),
            measured(own.total.mae),
            measured(own.total.rmse),
            *(measured(each.r2) for each in (own.total, own.faded, own.window)),
            measured(own.bias),
            _best(own),
        )
        for name, own in evaluation.targets.items()
    ]
    means = [measured(each.r2) for each in (evaluation.total, evaluation.faded, evaluation.window)]
    rows.append(("mean", ABSENT, ABSENT, ABSENT, *means, ABSENT, ABSENT))
    made = table(heads, rows, caption="Errors in the units of each target")
    return f'<div class="wide scroll">{made}</div>'


def _best(own: Evaluation) -> str:
    best = own.best_baseline
    return ABSENT if best is None else measured(own.baselines[best].total.rmse)


def render_shared_tree(picture: TreePicture) -> str:
    """Return the upper part of a tree of several targets as text, with the means of each."""
    lines = escape(to_text(picture, max_depth=DEEPEST))
    return (
        "<p>One tree for all targets: a leaf shows the mean of each. For a single one, "
        "<code>tree.of_target(name).draw()</code> makes a picture.</p>\n"
        f'<div class="scroll"><pre>{lines}</pre></div>'
    )


def render_target_curves(evaluation: Evaluation) -> str | None:
    """Return the learning curves of the first targets; None if there are too few rows."""
    shown = list(evaluation.targets.items())[:MOST_CURVES]
    if not any(len(own.curve) for _, own in shown):
        return None
    drawn = "\n".join(
        chart(
            f"rmse-of-target-{place}",
            f"RMSE of {text(name, 40)}",
            plot.learning_curve,
            own,
            "rmse",
            along=along_of(own),
        )
        for place, (name, own) in enumerate(shown)
    )
    rest = len(evaluation.targets) - len(shown)
    more = f'<p class="quiet">And {rest} more targets.</p>' if rest else ""
    return f"{charts(drawn)}{more}"

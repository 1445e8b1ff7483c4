"""The part of the report about rules: the largest ones, and what happened to such rules."""

from collections.abc import Sequence
from typing import Any

from sapwood.evaluate.result import Evaluation
from sapwood.evaluate.rule_log import RuleEvent
from sapwood.inspect.rules import ClassRule, RuleSet
from sapwood.inspect.tree_views import TreeViews
from sapwood.model import readable_part
from sapwood.report.html import Words, aligned_column, count, scrolled, share, text
from sapwood.stages.stage import Stage

__all__ = ["render_class_rules", "render_rules"]

MOST_RULES = 8
MOST_EVENTS = 20  # the latest
LONGEST = 400  # letters


def render_rules(evaluation: Evaluation, model: Any) -> str | None:
    """Return the largest rules and the latest events; None if the model has none."""
    part: Any = readable_part(model)
    if not hasattr(part, "to_rules") or getattr(part, "targets", None):
        return None
    rules = part.to_rules()
    if len(rules) < 2:
        return None
    shown = rules[:MOST_RULES]
    means, errors = (
        aligned_column([getattr(r, name) for r in shown]) for name in ("mean", "error")
    )
    rows = [
        (
            text(rule.conditions_text(), LONGEST),
            share(rule.share, 1.0),
            mean,
            error,
            text(rule.linear_text(), LONGEST) if rule.slopes else "",
            count(rule.age),
        )
        for rule, mean, error in zip(shown, means, errors, strict=True)
    ]
    is_tree = isinstance(part, TreeViews)  # members of ensembles weight rows
    heads = [
        Words("rows for which"),
        "share of rows",
        "mean",
        "RMSE",
        Words("linear model"),
        "age in rows" if is_tree else "age (weight learned)",
    ]
    events = _events(evaluation.rule_events) if is_tree else ""
    made = scrolled(heads, rows, kind="rules linear")
    return f"{_covered(rules, not is_tree)}{_unit(model)}{made}\n{events}"


def render_class_rules(model: Any) -> str | None:
    """Return the largest rules of a classifier; None if there is no model, or one rule."""
    rules = RuleSet(()) if model is None else model.to_rules()
    if len(rules) < 2:
        return None
    heads = [
        Words("rows for which"),
        "share of rows",
        Words("class"),
        "its share",
        Words("second class"),
        "its share",
    ]
    made = scrolled(heads, map(_class_row, rules[:MOST_RULES]), kind="rules")
    return f"{_covered(rules, False)}{made}"


def _class_row(rule: ClassRule) -> tuple[str, ...]:
    first, second = list(rule.probabilities.items())[:2]
    return (
        text(rule.conditions_text(), LONGEST),
        share(rule.share, 1.0),
        text(first[0]),
        share(first[1], 1.0),
        text(second[0]),
        share(second[1], 1.0),
    )


def _covered(rules: RuleSet, of_member: bool) -> str:
    shown = rules[:MOST_RULES]
    covered = share(sum(rule.share for rule in shown), 1.0)
    one = " of the member with the smallest recent error" if of_member else ""
    return (
        f"<p>Each leaf of the tree is a rule. The {len(shown)} largest of {count(len(rules))} "
        f"rules{one} cover {covered} of the rows.</p>\n"
    )


def _unit(model: Any) -> str:
    """Return in which unit numbers are, if it is not that of the target."""
    while isinstance(model, Stage):
        if (transform := getattr(model, "transform", "auto")) != "auto":
            return f"<p>Numbers are of the transformed target ({text(transform)}).</p>\n"
        model = model.model
    return ""


def _events(events: Sequence[RuleEvent]) -> str:
    if not events:
        return "<p>None of the largest rules was divided, removed or changed.</p>"
    rows = [
        (
            count(event.row),
            event.kind,
            text(event, LONGEST),
            share(event.share, 1.0),
        )
        for event in reversed(events[-MOST_EVENTS:])
    ]
    heads = ["noted at row", Words("event"), Words("rule"), "share of rows"]
    latest = f"The latest {MOST_EVENTS} of " if len(events) > MOST_EVENTS else ""
    title = f"{latest}{count(len(events))} events of the largest rules"
    return scrolled(heads, rows, caption=title)

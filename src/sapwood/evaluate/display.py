"""An evaluation for people: as a few lines of text, and as a table for notebooks."""

import os
from html import escape
from typing import TYPE_CHECKING

from sapwood.formatting import number, plain, r_squared

if TYPE_CHECKING:
    from sapwood.evaluate.result import Errors, Evaluation

__all__ = ["as_html", "as_text"]

LONGEST = 80  # letters of a name
MEAN = "mean, in units of deviations"
MOST = 10  # drift events that are listed
CELL = "text-align:right;padding:0.15em 0.8em"
HEAD = "text-align:left;padding:0.15em 0.8em 0.15em 0"


def _rows(found: "Evaluation") -> list[tuple[str, "Errors"]]:
    from sapwood.evaluate.result import BASELINES

    if found.targets:
        each = [(plain(name, 40), own.total) for name, own in found.targets.items()]
        return [*each, (MEAN, found.total)]
    window = f"last {min(found.window_rows, found.rows_scored):,} rows"
    rows = [
        ("all rows", found.total),
        ("exponentially weighted", found.faded),
        (window, found.window),
    ]
    return rows + [(BASELINES[name], rival.total) for name, rival in found.baselines.items()]


def as_text(found: "Evaluation") -> str:
    """Return an evaluation in about ten lines."""
    lines = [f"Evaluation of {_title(found)}"]
    lines.append(f"{found.headline} (target: {plain(found.target, 40)})")
    names = [name for name, _ in _rows(found)]
    wide = max(map(len, names))
    lines.append(f"{'':{wide}}  {'MAE':>10}  {'RMSE':>10}  {'R²':>8}")
    for name, errors in _rows(found):
        cells = f"{number(errors.mae, 5):>10}  {number(errors.rmse, 5):>10}"
        lines.append(f"{name:{wide}}  {cells}  {r_squared(errors.r2):>8}")
    lines += [f"{name}: {number(value, 5)}" for name, value in found.losses.items()]
    lines += _bounds(found, "")
    for name, own in found.targets.items():
        lines += _bounds(own, f" around {plain(name, 40)}")
    lines += [f"drift: {alarm}" for alarm in (found.drift_events or ())[-MOST:]]
    lines.append(_counted(found))
    return "\n".join(lines)


def _bounds(found: "Evaluation", of_what: str) -> list[str]:
    """Return a line for each level of the prediction intervals, if there are any."""
    return [
        f"prediction intervals {level:g}{of_what}: coverage {each.total.coverage:.4f}, "
        f"mean width {number(each.total.width, 5)}, "
        f"interval score {number(each.total.score, 5)}"
        for level, each in ({} if found.intervals is None else found.intervals.levels).items()
    ]


def _title(found: "Evaluation") -> str:
    model = " ".join(found.model.split())
    model = model if len(model) <= LONGEST else f"{model[: LONGEST - 1]}…"
    return f"{model} on {plain(os.path.basename(found.stream) or found.stream, LONGEST)}"


def _counted(found: "Evaluation") -> str:
    words = (
        f"{found.rows_read:,} rows read, {found.rows_learned:,} learned, "
        f"{found.rejected.count:,} rejected, {found.unscored:,} not scored; {found.seconds:.2f} s"
    )
    if found.rows_without_target:
        words += f"; {found.rows_without_target:,} rows without a target"
    if found.leaves is not None and found.model_bytes is not None:
        words += f"; {found.leaves:,} leaves, {found.model_bytes / 1e6:.2f} MB"
    return words


def as_html(found: "Evaluation") -> str:
    """Return an evaluation as a table of HTML."""
    body = "".join(
        f'<tr><th style="{HEAD};font-weight:normal">{escape(name)}</th>'
        f'<td style="{CELL}">{number(errors.mae, 5)}</td>'
        f'<td style="{CELL}">{number(errors.rmse, 5)}</td>'
        f'<td style="{CELL}">{r_squared(errors.r2)}</td></tr>'
        for name, errors in _rows(found)
    )
    losses = "".join(
        f'<tr><th style="{HEAD};font-weight:normal">{escape(plain(name, 40))}</th>'
        f'<td colspan="3" style="{CELL}">{number(value, 5)}</td></tr>'
        for name, value in found.losses.items()
    )
    heads = "".join(f'<th style="{CELL}">{name}</th>' for name in ("MAE", "RMSE", "R²"))
    return (
        f"<div><b>{escape(_title(found))}</b><br>{escape(found.headline)} "
        f"(target: {escape(plain(found.target, 40))})"
        f'<table style="border-collapse:collapse"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{body}{losses}</tbody></table><small>{escape(_counted(found))}</small></div>"
    )

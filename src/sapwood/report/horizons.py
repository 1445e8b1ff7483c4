"""The part of a report about horizons: the scores of each."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sapwood.report.html import ABSENT, Column, count, measured, table, text

__all__ = ["render_horizons"]

SCORES = {
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "mase": "MASE",
    "skill_seasonal": "skill over seasonal naive",
    "skill_last": "skill over last known value",
}


def render_horizons(horizons: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of the scores of each horizon.

    Parameters
    ----------
    horizons : sequence of mappings
        As `sapwood evaluate --horizon --json` prints them.
    """
    heads = [Column("horizon"), Column("rows", True)]
    heads += [Column(title, True) for title in SCORES.values()]
    rows = [
        [text(row["horizon"]), count(row["rows"]), *(_score(row[name]) for name in SCORES)]
        for row in horizons
    ]
    season = next((row["season"] for row in horizons if row["season"]), None)
    seasonal = "" if season is None else f" The season is {text(season)}."
    return (
        f"{table(heads, rows, caption='Scores by horizon, one model each')}\n<p>Skill is 1 − RMSE of "
        "the model / RMSE of the naive forecast. MASE is the MAE divided by the mean absolute "
        f"difference of values a season apart.{seasonal} The other parts of this page are of the "
        "longest horizon.</p>"
    )


def _score(value: float | None) -> str:
    return ABSENT if value is None or not math.isfinite(value) else measured(value)

"""What comparisons have in common: models that fail, ranks in words, in JSON and as a diagram."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood.evaluate.ranking import Ranking

__all__ = ["Failed", "described", "draw_ranks", "verdict"]


@dataclass(frozen=True)
class Failed:
    """A model that failed: its error message, and the number of rows before it."""

    words: str
    rows_learned: int
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return that in terms of JSON."""
        return {"failed": self.words, "rows": {"learned": self.rows_learned}}


def verdict(ranking: "Ranking", names: Mapping[str, str] | None = None) -> str:
    """Return whether the ranks of models differ."""
    from sapwood.evaluate.ranking import ENOUGH

    if ranking.tests is None:
        return f"too few to test whether ranks differ: {ENOUGH} streams and 3 models are needed"
    names = names or dict(zip(ranking.models, ranking.models, strict=True))
    groups = [", ".join(names[model] for model in group) for group in ranking.groups()]
    alike = f"not significantly different: {'; '.join(groups)}" if groups else "all differ"
    return (
        f"Friedman's test: p = {ranking.tests.friedman_p:.2g}; critical difference "
        f"{ranking.tests.critical_difference:.2f} (Nemenyi, alpha = 0.05); {alike}"
    )


def described(
    streams: list[str],
    models: list[str],
    found: Sequence[Sequence[Any]],
    ranking: "Ranking",
) -> dict[str, Any]:
    """Return a comparison in terms of JSON: a result of each model on each stream, and ranks."""
    results = [
        {**cell.to_dict(), "stream": name, "model": model}
        for name, row in zip(streams, found, strict=True)
        for model, cell in zip(models, row, strict=True)
    ]
    tests = ranking.tests
    return {
        "results": results,
        "ranks": dict(zip(ranking.models, ranking.ranks, strict=True)),
        "friedman_p": None if tests is None else tests.friedman_p,
        "critical_difference": None if tests is None else tests.critical_difference,
    }


def draw_ranks(path: Path, ranking: "Ranking", measure: str) -> None:
    """Draw average ranks, and which of them do not differ, by the title of a measure."""
    from sapwood.plot.ranks import ranks

    drawn = ranks(ranking, title=f"Average rank by {measure}").get_figure(root=True)
    assert drawn is not None
    drawn.savefig(path, bbox_inches="tight")

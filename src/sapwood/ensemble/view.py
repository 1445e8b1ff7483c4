"""Ensembles in numbers, and how their predictions come about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sapwood.formatting import aligned, number, table
from sapwood.inspect.explanation import Explanation

__all__ = ["EnsembleExplanation", "EnsembleSummary", "Member"]


class Member(NamedTuple):
    """A tree of an ensemble."""

    role: str
    age: int  # in rows
    leaves: int
    nbytes: int
    error: float  # recent RMSE; of several targets, in units of their deviations
    weight: float  # its share in what is predicted; of several targets, the mean


@dataclass(frozen=True)
class EnsembleSummary:
    """The trees of an ensemble; the last is the candidate that may replace another.

    Examples
    --------
    >>> old, young = Member("plain", 900, 4, 90_000, 1.5, 1), Member("plain", 200, 1, 9_000, 2, 0)
    >>> print(EnsembleSummary([old, young], 900, 120_000, 0))
    900 rows, 120,000 bytes, 0 replacements
               age  leaves   bytes  recent RMSE  weight
    0 plain    900       4  90,000          1.5       1
    candidate  200       1   9,000            2       0
    """

    members: Sequence[Member]
    rows: int
    nbytes: int
    replacements: int
    targets: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the same as a dict of plain values."""
        return {
            "rows": self.rows,
            **({"targets": self.targets} if self.targets > 1 else {}),
            "bytes": self.nbytes,
            "replacements": self.replacements,
            "members": [member._asdict() for member in self.members],
        }

    def __str__(self) -> str:
        error = "recent RMSE" if self.targets == 1 else "RMSE / deviation"
        rows = [("", "age", "leaves", "bytes", error, "weight")]
        for place, member in enumerate(self.members):
            is_member = place < len(self.members) - 1
            rows.append(
                (
                    f"{place} {member.role}" if is_member else "candidate",
                    f"{member.age:,}",
                    f"{member.leaves:,}",
                    f"{member.nbytes:,}",
                    number(member.error, 4),
                    number(member.weight, 3),
                )
            )
        head = f"{self.rows:,} rows, {self.nbytes:,} bytes, {self.replacements:,} replacements"
        if self.targets > 1:
            head += f", {self.targets:,} targets"
        return f"{head}\n{table(rows)}"


@dataclass(frozen=True)
class EnsembleExplanation:
    """The explanation of a prediction; `print` it to read it.

    Parameters
    ----------
    members : sequence of tuples
        The name of each member, its prediction, and its weight.
    heaviest : int
        Which of them has the largest weight.
    path : Explanation, optional
        The explanation of its prediction; None of a target that no member has learned yet.
    together : float
        The weighted mean of their predictions.
    prediction : float
        The prediction: the same with error correction.
    """

    members: Sequence[tuple[str, float, float]]
    heaviest: int
    path: Explanation | None
    together: float
    prediction: float

    def to_dict(self) -> dict[str, Any]:
        """Return the same as a dict of plain values."""
        return {
            "members": [
                {"member": name, "prediction": said, "weight": weight}
                for name, said, weight in self.members
            ],
            "together": self.together,
            "last_layer": self.prediction - self.together,
            "prediction": self.prediction,
            "heaviest": self.heaviest,
            "path": None if self.path is None else self.path.to_dict(),
        }

    def __str__(self) -> str:
        said = aligned([said for _, said, _ in self.members])
        rows = [("member", "says", "weight")]
        rows += [
            (name, text, number(weight, 3))
            for (name, _, weight), text in zip(self.members, said, strict=True)
        ]
        names = ("together, by weights", "error correction", "prediction")
        amounts = aligned([self.together, self.prediction - self.together, self.prediction])
        sums = list(zip(names, amounts, strict=True))
        text = f"{table(rows)}\n\n{table(sums)}"
        if self.path is None:
            return text
        return f"{text}\n\nmember {self.heaviest} has the largest weight:\n\n{self.path}"

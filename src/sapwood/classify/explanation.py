"""Explanations of the predictions of classifiers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sapwood.formatting import aligned, table
from sapwood.validation import Label

__all__ = ["ClassExplanation"]


@dataclass(frozen=True)
class ClassExplanation:
    """Why classes are rated as they are; `print` it to read it.

    Trees rate each class, and calibration makes probabilities of all ratings together. So features
    contribute to the rating of a class; to its probability they do not add up. Of two classes only
    the second is rated: the rating of the first is 1 minus it.

    Parameters
    ----------
    probabilities : dict
        Of each class, calibrated.
    ratings : dict
        The explanation of the rating of a class, by label: that of a regressor whose target is 1 in
        the rows of the class and 0 in all others.
    """

    probabilities: Mapping[Label, float]
    ratings: Mapping[Label, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as dicts, lists and plain values; labels are text."""
        return {
            "probabilities": {str(label): share for label, share in self.probabilities.items()},
            "ratings": {str(label): found.to_dict() for label, found in self.ratings.items()},
        }

    def __str__(self) -> str:
        shown = sorted(self.probabilities, key=lambda label: -self.probabilities[label])
        texts = aligned([self.probabilities[label] for label in shown])
        rows = [["class", "probability"], *zip(map(str, shown), texts, strict=True)]
        parts = [f"rating of class {label!r}:\n\n{own}" for label, own in self.ratings.items()]
        return "\n\n".join([table(rows), *parts])

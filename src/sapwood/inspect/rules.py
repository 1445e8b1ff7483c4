"""A tree as rules: one for each leaf, with one condition for each feature on its path.

`sapwood.inspect.rule_reading` reads them off a tree.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sapwood import validation
from sapwood.formatting import MOST_LETTERS, finite, number, plain
from sapwood.validation import Label

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClassRule", "Condition", "Rule", "RuleSet"]

MOST_LABELS = 4  # that a line of text lists
MOST_TERMS = 3  # of a linear model that a line of text lists


@dataclass(frozen=True)
class Condition:
    """What a rule requires of one feature.

    Parameters
    ----------
    feature : str or int
        The name of the feature.
    low, high : float
        The feature is at least `low` and below `high`; infinite where there is no limit.
    labels : tuple, optional
        The categories that it may have. None for a number.
    missing : bool
        Whether the rule also applies where the feature is missing, or is a category that the
        tree has not seen.
    encoded : bool
        Whether the limits apply to the target encoding of a high-cardinality category.

    Examples
    --------
    >>> print(Condition("temp", 12.5, 20.0))
    12.5 <= temp < 20
    >>> print(Condition("city", labels=("Oslo", "Rome"), missing=True))
    city in {Oslo, Rome} (or missing)
    """

    feature: Label
    low: float = -math.inf
    high: float = math.inf
    labels: tuple[Label, ...] | None = None
    missing: bool = False
    encoded: bool = False

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, digits: int = 6) -> str:
        """Return the condition as text, with a number of significant digits."""
        name = plain(self.feature, MOST_LETTERS)
        if self.encoded:
            name = f"encoding({name})"
        if self.labels == ():
            return f"{name} is unseen or missing"
        if self.labels is not None:
            text = f"{name} in {{{', '.join(_shortened(self.labels))}}}"
        elif math.isinf(self.high):
            text = f"{name} >= {number(self.low, digits)}"
        else:
            low = "" if math.isinf(self.low) else f"{number(self.low, digits)} <= "
            text = f"{low}{name} < {number(self.high, digits)}"
        return f"{text} (or missing)" if self.missing else text

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as values of JSON; a limit that is infinite is None."""
        return {
            "feature": self.feature,
            "low": finite(self.low),
            "high": finite(self.high),
            "labels": None if self.labels is None else list(self.labels),
            "missing": self.missing,
            "encoded": self.encoded,
        }


def _shortened(labels: Sequence[Label]) -> list[str]:
    shown = labels if len(labels) <= MOST_LABELS else labels[: MOST_LABELS - 1]
    texts = [plain(label, MOST_LETTERS) for label in shown]
    return texts + ([f"+{len(labels) - len(shown)} more"] if len(shown) < len(labels) else [])


@dataclass(frozen=True)
class _Part:
    """The rows of a leaf: what rules of numbers and of classes have in common.

    - `conditions`: all of them hold for the rows of the leaf; one for each feature at most.
    - `node`: the number of the leaf in `to_frame`, which `prune` takes.
    - `weight`: of the rows that have met the conditions so far, an estimate: rows that were learned
      before a split are divided as those by which it was found. The weights of all rules add up to
      the weight of the rows learned.
    - `share`: of the weight of all rows.
    - `age`: the weight that the tree has learned since the leaf was made.
    """

    conditions: tuple[Condition, ...]
    node: int
    weight: float
    share: float
    age: float

    numbers: ClassVar[tuple[str, ...]] = ("node", "weight", "share", "age")

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, digits: int = 4) -> str:
        """Return the rule as text, with a number of significant digits."""
        lines = [f"if {self.conditions_text(digits + 2)}"]
        return "\n".join([*lines, *self.conclusions(digits)])

    def conditions_text(self, digits: int = 6) -> str:
        """Return the conditions in one line; "any row" if there is none."""
        return " and ".join(each.to_text(digits) for each in self.conditions) or "any row"

    def conclusions(self, digits: int) -> list[str]:
        """Return the lines of text on what is predicted."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as values of JSON."""
        return {
            **{name: finite(getattr(self, name)) for name in self.numbers},
            "conditions": [each.to_dict() for each in self.conditions],
        }


@dataclass(frozen=True)
class Rule(_Part):
    """One leaf of a tree: the rows that it applies to, and what it predicts for them.

    Parameters
    ----------
    conditions, node, weight, share, age
        All conditions hold for the rows of the leaf `node`, at most one for each feature. `weight`
        is that of the rows that have met them so far, an estimate: rows that were learned before a
        split are divided as those by which it was found, so that the weights of all rules add up
        to the weight of the rows learned. `share` is that of all rows, and `age` is the weight
        that the tree has learned since the leaf was made.
    mean, deviation : float
        Of the target in the leaf.
    error : float
        The root mean squared error of the leaf's best expert, over the rows since it was made; before
        the second one, the deviation of the target where its parent split.
    intercept : float
        What the linear model of the leaf predicts where all features are 0; the mean where the
        leaf has none.
    slopes : dict
        What one unit of each feature adds to it, of features that add anything; those that explain
        most are first.
    centres : dict
        A typical value of each of these features: its mean in the first rows of the tree, or a value
        near it that meets the conditions.
    encoded : frozenset
        Those of them that are categories, which count by their target encoding.
    low, high : float
        The tree holds the predictions of its linear models within this range. A rule that is used
        outside the tree has to do the same.

    Notes
    -----
    The prediction of the tree without error correction is ``intercept`` plus the sum of ``slopes``
    times features, held within ``low`` and ``high``. There is a difference where only some of the
    leaf's experts are beyond that range, or where a feature is far from all values of the leaf.
    """

    mean: float
    deviation: float
    error: float
    intercept: float
    slopes: dict[Label, float]
    centres: dict[Label, float]
    encoded: frozenset[Label]
    low: float
    high: float

    numbers: ClassVar[tuple[str, ...]] = (
        *("node", "weight", "share", "mean", "deviation", "error", "age", "intercept"),
        *("low", "high"),
    )

    @property
    def central(self) -> float:
        """What the linear model predicts where each feature is at its centre."""
        return self.intercept + math.fsum(
            slope * self.centres[name] for name, slope in self.slopes.items()
        )

    def conclusions(self, digits: int) -> list[str]:
        """Return the lines of text on what is predicted."""
        found = f"mean {number(self.mean, digits)} ± {number(self.error, digits)}"
        lines = [f"  then {found}  ({self.share:.1%} of rows)"]
        if self.slopes:
            lines.append(f"  linear: {self.linear_text(digits)}")
        return lines

    def linear_text(self, digits: int = 4, most: int = MOST_TERMS) -> str:
        """Return the linear model as text, around the centres of the features.

        Parameters
        ----------
        digits : int
            Significant digits of a number.
        most : int
            How many terms, those first that explain most.
        """
        terms = [
            f" {'-' if slope < 0 else '+'} {number(abs(slope), digits)} {self._term(name, digits)}"
            for name, slope in list(self.slopes.items())[:most]
        ]
        more = len(self.slopes) - len(terms)
        terms += [f" + {more} more terms"] if more else []
        return f"{number(self.central, digits)}{''.join(terms)}"

    def _term(self, feature: Label, digits: int) -> str:
        name, centre = plain(feature), self.centres[feature]
        name = f"encoding({name})" if feature in self.encoded else name
        if centre == 0.0:
            return name
        return f"({name} {'+' if centre < 0 else '-'} {number(abs(centre), digits + 2)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as values of JSON."""
        return {
            **super().to_dict(),
            "slopes": {str(name): slope for name, slope in self.slopes.items()},
            "centres": {str(name): centre for name, centre in self.centres.items()},
            "encoded": sorted(map(str, self.encoded)),
        }


@dataclass(frozen=True)
class ClassRule(_Part):
    """One leaf of a tree of classes: the rows that it applies to, and the share of each class.

    Parameters
    ----------
    conditions, node, weight, share, age
        As of `Rule`.
    probabilities : dict
        The share of each class in the leaf, the largest first. They are those of the leaf's rows as
        they were weighted; predictions also use linear models, and are calibrated.
    """

    probabilities: dict[Label, float]

    @property
    def label(self) -> Label:
        """The class with the largest share."""
        return next(iter(self.probabilities))

    def conclusions(self, digits: int) -> list[str]:
        """Return the lines of text on what is predicted."""
        shown = list(self.probabilities.items())[:MOST_LABELS]
        words = [f"{plain(label, MOST_LETTERS)} {share:.1%}" for label, share in shown]
        more = len(self.probabilities) - len(shown)
        words += [f"+{more} more classes"] if more else []
        return [f"  then {', '.join(words)}  ({self.share:.1%} of rows)"]

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as values of JSON."""
        shares = {str(label): share for label, share in self.probabilities.items()}
        return {**super().to_dict(), "label": self.label, "probabilities": shares}


@dataclass(frozen=True)
class RuleSet(Sequence[Any]):
    """The rules of a tree, those of most rows first; `print` it to read them.

    Examples
    --------
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor(leaf="mean", track=None)
    >>> tree.learn_many({"x": [0.0, 1.0] * 500, "z": [3.0] * 1000}, [2.0, 5.0] * 500)
    >>> rules = tree.to_rules()
    >>> print(rules)
    if x < 1 (or missing)
      then mean 2 ± 0  (50.0% of rows)
    if x >= 1
      then mean 5 ± 0  (50.0% of rows)
    >>> rules[1].conditions
    (Condition(feature='x', low=1.0, high=inf, labels=None, missing=False, encoded=False),)
    >>> sum(rule.weight for rule in rules)
    1000.0
    """

    rules: tuple[Any, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.rules[place]

    def __len__(self) -> int:
        return len(self.rules)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, most: int | None = None, digits: int = 4) -> str:
        """Return the first rules, or all, as text.

        Parameters
        ----------
        most : int, optional
            How many.
        digits : int
            Significant digits of a number.
        """
        if most is not None:
            validation.whole(most, "most", 1, 2**31)
        validation.whole(digits, "digits", 1, 15)
        if not self.rules:
            return "no rows learned yet"
        texts = [rule.to_text(digits) for rule in self.rules[:most]]
        if more := len(self.rules) - len(texts):
            rest = sum(rule.share for rule in self.rules[len(texts) :])
            texts.append(f"… {more} more rules  ({rest:.1%} of rows)")
        return "\n".join(texts)

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rules as values of JSON."""
        return [rule.to_dict() for rule in self.rules]

    def to_json(self) -> str:
        """Return the rules as a text of JSON."""
        return json.dumps(self.to_records(), allow_nan=False)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame with one row per rule.

        Conditions are a text. The slope of each feature, or the probability of each class, has a
        column of its own, such as ``slope of temp``; 0 where there is none.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas, which is not installed: run `pip install pandas`, "
                "or call to_records"
            ) from error
        kind = type(self.rules[0]) if self.rules else Rule
        columns: dict[str, list[Any]] = {
            "conditions": [rule.conditions_text() for rule in self.rules],
            **{name: [getattr(rule, name) for rule in self.rules] for name in kind.numbers},
        }
        field = "slopes" if kind is Rule else "probabilities"
        names = dict.fromkeys(name for rule in self.rules for name in getattr(rule, field))
        for name in names:
            title = f"{'slope' if kind is Rule else 'probability'} of {name}"
            columns[title] = [getattr(rule, field).get(name, 0.0) for rule in self.rules]
        return pd.DataFrame(columns)

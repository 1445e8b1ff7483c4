"""A delta: what the rows of one or more shards have added to a tree since a snapshot."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.merge import _delta, correction_layer
from sapwood.merge.alignment import aligned, targets_of, united
from sapwood.merge.checking import check_arrays
from sapwood.merge.column_facts import joined_facts
from sapwood.merge.errors import MergeError
from sapwood.merge.layout import SCORES
from sapwood.merge.leaf_sums import joined_leaves, joined_moments
from sapwood.merge.release import check_release, of_this_release
from sapwood.records import check
from sapwood.row_methods import RowsToLearn
from sapwood.rows.features import Features
from sapwood.rows.targets import Targets, fitting
from sapwood.storage import container
from sapwood.storage.container import ModelFileError, damaged

__all__ = ["ARRAYS", "Delta", "joined_scores", "learned_and_scored"]

Array = NDArray[Any]

KIND = "TreeDelta"
FORMAT = 4
MOST_SHARDS = 2**62
HEADER = {"base", "round", "shards", "features", "known"}
OTHER_RELEASE = (
    "comes from a worker with sapwood {made} and the driver has {here}: install the same release "
    "on both"
)
ARRAYS = (
    "sums",
    "target_sums",
    "models",
    "places",
    "slots",
    "parts_at",
    "parts",
    "levels",
    "label_sums",
    "facts",
    "stream",
    "layer",
    "scores",
)


@dataclass(frozen=True, eq=False)
class Delta:
    """The changes of the statistics of a tree by the rows of a shard.

    Deltas of one round can be added in any order and grouping; results differ by rounding only
    (about 1e-12). `ShardLearner.delta` returns a delta, `Delta.from_bytes` reads one, ``+`` adds
    two, and `sapwood.merge.apply` applies one to a tree.

    Parameters
    ----------
    base : str
        The digest of the snapshot that the shards were learned from.
    round : int
        To which it belongs.
    shards : tuple of int
        The numbers of the shards in it, ascending; their order is that of their rows.
    features : dict
        All that is known of features, as `Features.to_header` returns it.
    known : list of int
        How many labels each feature of the snapshot had.
    arrays : dict of arrays
        What was added.
    """

    base: str
    round: int
    shards: tuple[int, ...]
    features: dict[str, Any]
    known: list[int]
    arrays: dict[str, Array] = field(repr=False)

    @property
    def rows(self) -> int:
        """The number of rows in it."""
        return int(self.arrays["sums"]["rows"].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    # -- sums ---------------------------------------------------------------------------------

    def __add__(self, other: object) -> "Delta":
        """Return the sum of two deltas, neither of which is changed.

        Raises
        ------
        MergeError
            If they are of different snapshots or rounds, or have a shard in common.
        """
        if not isinstance(other, Delta):
            return NotImplemented
        for name in ("base", "round"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                raise MergeError(
                    f"deltas of different {name}s do not add: {one} and {two}; let all workers "
                    "learn from the same snapshot"
                )
        twice = sorted({*self.shards} & {*other.shards})
        if twice:
            raise MergeError(
                f"shard {twice[0]} of round {self.round} is in both deltas: a shard counts once; "
                "leave one of them out"
            )
        features = united(self.features, other.features, self.known)
        slots = self._slots
        one = aligned(self.arrays, self.features, features, slots)
        two = aligned(other.arrays, other.features, features, slots)
        arrays = {
            **joined_leaves(one, two),
            **_in_order(
                np.concatenate([one["parts_at"], two["parts_at"]]),
                np.concatenate([one["parts"], two["parts"]]),
            ),
            "levels": one["levels"] + two["levels"],
            "label_sums": one["label_sums"] + two["label_sums"],
            "facts": joined_facts(one["facts"], two["facts"]),
            "stream": _joined_streams(one["stream"], two["stream"]),
            "layer": correction_layer.latest(
                (_last_shard(self), one["layer"]), (_last_shard(other), two["layer"])
            ),
            "scores": joined_scores(one["scores"], two["scores"]),
        }
        shards = tuple(sorted(self.shards + other.shards))
        return Delta(self.base, self.round, shards, features, self.known, arrays)

    @property
    def _slots(self) -> int:
        """How many slots a number has."""
        doubles = int(self.arrays["parts"].shape[1]) - _delta.GRID_DOUBLES
        return doubles // _delta.slot_width(targets_of(self.features))

    # -- bytes --------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the delta in the container of model files."""
        header = {
            "base": self.base,
            "round": self.round,
            "shards": list(self.shards),
            "features": self.features,
            "known": self.known,
        }
        return container.pack(KIND, of_this_release(FORMAT, header), self.arrays)

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "the delta") -> Self:
        """Restore what `to_bytes` made.

        Parameters
        ----------
        data : bytes
            The data may be untrusted: no code is run, and everything is checked.
        source : str
            The name of the data in error messages.

        Raises
        ------
        sapwood.ModelFileError
            If they are no delta.
        MergeError
            If another release has made it.
        """
        header, arrays = container.unpack(data, KIND, source)
        try:
            check_release(header, HEADER, FORMAT, source, OTHER_RELEASE)
            return cls(*_checked_header(header), _checked_arrays(header, arrays))
        except (MergeError, ModelFileError):
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise damaged(source, str(error)) from None


def _checked_header(
    header: dict[str, Any],
) -> tuple[str, int, tuple[int, ...], dict[str, Any], list[int]]:
    base, shards, known = header["base"], header["shards"], header["known"]
    check(isinstance(base, str) and len(base) == 2 * container.DIGEST, "its snapshot has no name")
    check(isinstance(shards, list) and bool(shards), "it has no shards")
    numbers = tuple(validation.whole(shard, "shard", 0, MOST_SHARDS) for shard in shards)
    check(list(numbers) == sorted(set(numbers)), "its shards are not in order, each of them once")
    features = Features.from_header(header["features"])
    good = isinstance(known, list) and len(known) <= len(features)
    check(good, "what the snapshot knew is missing")
    for count, labels in zip(known, features.categories, strict=False):
        validation.whole(count, "the number of labels", 0, len(labels))
    return (
        base,
        validation.whole(header["round"], "round", 0, 2**62),
        numbers,
        header["features"],
        known,
    )


def _checked_arrays(header: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Array]:
    check(arrays.keys() == set(ARRAYS), f"its arrays are not {', '.join(ARRAYS)}")
    check_arrays(arrays, header["features"])
    correction_layer.check_layer(arrays["layer"], targets_of(header["features"]))
    return arrays


def _last_shard(delta: Delta) -> int:
    """Return the number of the last shard, -1 if no shard has a row."""
    return delta.shards[-1] if delta.rows else -1


def _in_order(parts_at: Array, parts: Array) -> dict[str, Array]:
    """Return parts by leaf, feature and content, whatever their order was."""
    keys = [*parts.T[::-1], parts_at[:, 1], parts_at[:, 0]]
    order = np.lexsort(keys)
    return {"parts_at": parts_at[order], "parts": parts[order]}


def _joined_streams(one: Array, other: Array) -> Array:
    joined = one + other
    joined[:, 1] = np.minimum(one[:, 1], other[:, 1])
    joined[:, 2] = np.maximum(one[:, 2], other[:, 2])
    return joined


def learned_and_scored(
    model: Any, X: Any, y: Targets, w: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Let a model learn rows; return what it predicts just before each, and the SCORES of that."""
    predictions = model._learn_many(RowsToLearn(X, y, w, delayed=False))
    _, known = fitting(y, model._names(), True, "model")
    return predictions, scores_of(known, predictions)


def scores_of(y: Array, predictions: Array) -> Array:
    """Return the SCORES of some predictions; of several targets, a row for each."""
    if y.ndim > 1:
        return np.array([scores_of(*own) for own in zip(y.T, predictions.T, strict=True)])
    known = ~np.isnan(y)
    if not known.any():
        return np.zeros(len(SCORES))
    y, errors = y[known], (y - predictions)[known]
    mean = y.mean()
    around = np.square(y - mean).sum()
    return np.array([len(y), np.abs(errors).sum(), np.square(errors).sum(), mean, around])


def joined_scores(one: Array, other: Array) -> Array:
    """Return the sum of two SCORES."""
    joined = one + other
    sets = [[each[..., part] for part in (0, 3, 4)] for each in (one, other)]
    joined[..., 3], joined[..., 4] = joined_moments(*sets)
    return joined

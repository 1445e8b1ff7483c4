"""The parameters of a tree, checked once; and empty kernels that obey them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions
from sapwood.observers.base import TableObserver
from sapwood.observers.quantizer import QuantizerObserver
from sapwood.rows.features import Features, checked_names
from sapwood.tree import memory
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.bounds import SPLIT_BOUNDS, SplitBoundName
from sapwood.tree.growth import SPLIT_ON, GrowthRules, SplitOn
from sapwood.tree.leaf_observers import LeafObservers
from sapwood.tree.memory import MemoryRules
from sapwood.validation import Label

__all__ = ["Leaf", "Track", "TreeSettings", "check_choice"]

Leaf = Literal["adaptive", "linear", "mean"]
Track = Literal["auto"] | None

LEAVES = ("adaptive", "linear", "mean")
TRACKS = ("auto", None)
DEEPEST = 10**6
SLOTS = 32
LEAST_SHARE = 1e-6
LEAST_DELTA = 1e-300


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """The settings of an empty tree, without the names of its features.

    Parameters
    ----------
    parameters : dict
        The equivalent arguments of `HoeffdingTreeRegressor`, without `categorical`.
    growth, memory
        The rules.
    observing : LeafObservers
        By what leaves watch their features.
    """

    parameters: dict[str, Any]
    growth: GrowthRules
    memory: MemoryRules
    observing: LeafObservers

    @classmethod
    def checked(
        cls,
        *,
        grace_period: float,
        delta: float,
        tau: float,
        min_share: float,
        max_depth: int | None,
        observer: TableObserver | None,
        leaf: Leaf,
        split_on: SplitOn,
        track: Track,
        max_bytes: int | None,
        no_splits: Iterable[Label],
        split_bound: SplitBoundName = "hoeffding",
    ) -> Self:
        """Return settings, or raise ValueError for a parameter that cannot be.

        The parameters are those of `sapwood.HoeffdingTreeRegressor`.
        """
        check_choice(leaf, "leaf", LEAVES)
        check_choice(split_on, "split_on", SPLIT_ON)
        check_choice(track, "track", TRACKS)
        check_choice(split_bound, "split_bound", tuple(SPLIT_BOUNDS))
        if observer is None:
            observer = QuantizerObserver(slots=SLOTS)
        observing = LeafObservers(observer)
        depth = None if max_depth is None else validation.whole(max_depth, "max_depth", 0, DEEPEST)
        growth = GrowthRules(
            grace_period=validation.positive(grace_period, "grace_period"),
            bound=SPLIT_BOUNDS[split_bound](validation.between(delta, "delta", LEAST_DELTA, 1.0)),
            tau=validation.between(tau, "tau", 0.0, 1.0),
            min_share=validation.between(min_share, "min_share", LEAST_SHARE, 0.5),
            max_depth=DEEPEST if depth is None else depth,
            split_on=split_on if leaf != "mean" else "target",
        )
        limit = None if max_bytes is None else validation.whole(max_bytes, "max_bytes", 1, 2**62)
        unsplit = checked_names(no_splits, "no_splits")
        parameters = {
            "grace_period": growth.grace_period,
            "delta": growth.bound.delta,
            "tau": growth.tau,
            "min_share": growth.min_share,
            "max_depth": depth,
            "observer": observer,
            "leaf": leaf,
            "split_on": split_on,
            "track": track,
            "max_bytes": limit,
            "no_splits": unsplit,
            "split_bound": split_bound,
        }
        return cls(parameters, growth, MemoryRules.of(limit, observing, unsplit), observing)

    def limited(self, max_bytes: int) -> Self:
        """Return the same with another limit of memory."""
        parameters = {**self.parameters, "max_bytes": max_bytes}
        rules = MemoryRules.of(max_bytes, self.observing, self.parameters["no_splits"])
        return replace(self, parameters=parameters, memory=rules)

    def without_splits_on(self, names: tuple[Label, ...]) -> Self:
        """Return the same for a tree that splits on all features but some."""
        parameters = {**self.parameters, "no_splits": names}
        rules = MemoryRules.of(self.parameters["max_bytes"], self.observing, names)
        return replace(self, parameters=parameters, memory=rules)

    def _new_pending(self) -> PendingPredictions | None:
        """Return the memory of pending predictions, for a tree with an error-correction layer."""
        if self.parameters["track"] is None:
            return None
        return memory.new_pending(self.parameters["max_bytes"], 1)

    def new_kernel(self, features: Features, name_bytes: int | None = None) -> TreeKernel:
        """Return an empty tree, whose rows some features will read.

        Parameters
        ----------
        features : Features
            By which rows are read.
        name_bytes : int, optional
            What counts for their names; what they occupy by default.
        """
        if name_bytes is None:
            name_bytes = memory.name_bytes(features, features.known)
        return TreeKernel(
            self.observing,
            self.parameters["leaf"] != "mean",
            self.parameters["leaf"] != "linear",
            self._new_pending(),
            self.growth.to_record(),
            self.memory.to_record(),
            name_bytes,
            self.parameters["no_splits"],
        )


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless a value is one of some."""
    if not any(
        value is choice or (isinstance(value, str) and value == choice) for choice in choices
    ):
        raise ValueError(f"{name} = {value!r}: one of {', '.join(map(repr, choices))} is expected")

"""Models that merge: deltas of shards, their sums, and what becomes of a tree."""

from sapwood.merge.applying import apply
from sapwood.merge.delta import Delta
from sapwood.merge.errors import MergeError
from sapwood.merge.shard_learner import ShardLearner
from sapwood.merge.snapshot import take_snapshot

__all__ = ["Delta", "MergeError", "ShardLearner", "apply", "take_snapshot"]

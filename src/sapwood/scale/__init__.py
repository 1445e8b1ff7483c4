"""Past one machine: rounds of workers that learn shards of rows, on any engine."""

from sapwood.scale.rounds import RoundReport, Rounds, Trained, train

__all__ = ["RoundReport", "Rounds", "Trained", "train"]

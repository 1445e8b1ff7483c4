"""What is wrong with deltas that do not belong together."""

__all__ = ["MergeError"]


class MergeError(ValueError):
    """Models or deltas that cannot be merged; the message names the reason and the remedy."""

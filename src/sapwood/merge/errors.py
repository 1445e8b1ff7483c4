"""What is wrong with deltas that do not belong together."""

__all__ = ["MergeError"]


class MergeError(ValueError):
    """Things that cannot be merged; the message says why, and what helps."""

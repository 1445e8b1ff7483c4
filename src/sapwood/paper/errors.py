"""Errors of a study that are not faults of the program."""

__all__ = ["StudyError"]


class StudyError(Exception):
    """The study cannot continue; the message is one line and names the remedy."""

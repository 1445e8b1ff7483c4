"""What goes wrong in a study and is not a fault of the program."""

__all__ = ["StudyError"]


class StudyError(Exception):
    """The study cannot go on; the message is one line and says what to do about it."""

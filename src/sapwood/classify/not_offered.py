"""Methods that a class inherits and does not offer."""

from typing import Any

__all__ = ["NotOffered"]


class NotOffered:
    """In place of a method: to take it from an object raises AttributeError, with a reason.

    Parameters
    ----------
    reason : str
        Why there is none.
    """

    def __init__(self, reason: str) -> None:
        self._reason, self._name = reason, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        named = (type(owner) if kind is None else kind).__name__
        raise AttributeError(f"a {named} has no {self._name}: {self._reason}")

"""Copies and pickles of what can be saved."""

from abc import abstractmethod
from typing import Any, Self

__all__ = ["CopiedByBytes"]


class CopiedByBytes:
    """Something whose copies and pickles are made of the bytes of its file."""

    __slots__ = ()  # leaves observe by thousands of such objects

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return all that it is."""

    @classmethod
    @abstractmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore what `to_bytes` made."""

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self).from_bytes(self.to_bytes())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

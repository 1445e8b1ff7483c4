"""The labels of some rows by codes, as files and frames have them: each label is there once."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sapwood.rows.column import Coded
from sapwood.validation import Label

__all__ = ["Labels"]


class Labels(Sequence[Label | None]):
    """A column of labels, which is read like a list; a part of it, or a choice of rows, is another.

    - `codes`: the place of each row's label in `known`.
    - `known`: the labels, None for what is missing; one may be there several times.

    Examples
    --------
    >>> colours = Labels(np.array([1, 0, 2, 1]), ["blue", "red", None])
    >>> colours, colours[0], colours[1:3], colours[np.array([0, 3])]
    (['red', 'blue', None, 'red'], 'red', ['blue', None], ['red', 'red'])
    >>> colours == ["red", "blue", None, "red"]
    True
    """

    __slots__ = ("codes", "known")
    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __init__(self, codes: NDArray[Any], known: Sequence[Label | None]):
        self.codes, self.known = codes, known

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> Label | None: ...
    @overload
    def __getitem__(self, place: slice | NDArray[Any]) -> "Labels": ...
    def __getitem__(self, place: Any) -> Any:
        """Return the label of a row, or the labels of several."""
        chosen = self.codes[place]
        return Labels(chosen, self.known) if isinstance(chosen, np.ndarray) else self.known[chosen]

    def __iter__(self) -> Iterator[Label | None]:
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        table = np.empty(len(self.known), dtype=object)
        table[:] = self.known
        labels: NDArray[Any] = table[self.codes]
        return labels if dtype is None else labels.astype(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | Labels) and self.tolist() == list(other)

    def __repr__(self) -> str:
        return repr(self.tolist())

    def tolist(self) -> list[Label | None]:
        """Return the label of each row."""
        labels: list[Label | None] = np.asarray(self).tolist()
        return labels

    def coded(self) -> Coded:
        """Return the column as it is read by models: each label once."""
        return Coded(self.codes, lambda rows: self[rows].tolist())

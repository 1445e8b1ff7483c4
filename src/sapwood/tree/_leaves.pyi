from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.observers.base import TableObserver
from sapwood.records import Records

def table_room(rows: int) -> int: ...
def lengthened(table: NDArray[Any], rows: int) -> NDArray[Any]: ...

class Leaves:
    linear: bool
    leaf_count: int
    leaf_table: Records
    def model_page(self, leaf: int) -> Any: ...
    def watch_page(self, leaf: int) -> Any: ...
    @property
    def model_pages(self) -> list[Any]: ...
    @property
    def watch_pages(self) -> list[Any]: ...
    @property
    def observers(self) -> list[list[TableObserver] | None]: ...
    def set_leaf(
        self,
        leaf: int,
        model: NDArray[np.float64] | None,
        watch: NDArray[np.float64] | None,
        observers: list[TableObserver] | None = None,
    ) -> None: ...
    @property
    def model_doubles(self) -> int: ...
    @property
    def watch_doubles(self) -> int: ...

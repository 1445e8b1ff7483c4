import numpy as np
from numpy.typing import NDArray

from sapwood.tree._tables import TreeTables

def nbytes(tables: TreeTables) -> int: ...
def promises(tables: TreeTables) -> NDArray[np.float64]: ...
def rank_now(tables: TreeTables, reserve: int) -> None: ...
def check_bound(tables: TreeTables) -> None: ...
def has_room_for_names(
    tables: TreeTables,
    is_category: NDArray[np.uint8],
    places: NDArray[np.intp],
    name_bytes: int,
    targets: int,
) -> bool: ...
def leaves_without_room(
    tables: TreeTables,
    is_category: NDArray[np.bool_],
    places: NDArray[np.intp],
    name_bytes: int,
    new_bytes: int,
    targets: int,
    pending_bytes: int,
) -> tuple[NDArray[np.bool_], bool]: ...
def has_room_to_grow(
    tables: TreeTables,
    is_category: NDArray[np.bool_],
    places: NDArray[np.intp],
    name_bytes: int,
    new_bytes: int,
    targets: int,
    pending_bytes: int,
    splits: int,
) -> bool: ...

from sapwood.tree._tables import TreeTables

def split_by(
    tables: TreeTables,
    leaf: int,
    feature: int,
    place: int,
    subset: int,
    merit: float,
    of_target: bool,
) -> None: ...

from typing import Any

from sapwood.tree._tables import TreeTables

def exchange(mine: TreeTables, made: TreeTables, parameters: dict[str, Any]) -> None: ...

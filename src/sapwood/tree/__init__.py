"""Trees; `HoeffdingTreeRegressor` is loaded when it is first used, as its parts are used alone."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["HoeffdingTreeRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sapwood.tree' has no attribute {name!r}")
    from sapwood.tree.regressor import HoeffdingTreeRegressor

    globals()[name] = HoeffdingTreeRegressor
    return HoeffdingTreeRegressor

"""Sapwood: online learning with trees and forests that learn from a stream row by row.

What is imported from here is loaded when it is first used, so that programs start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood.classify import (
        AdaptiveTreeClassifier,
        ForestClassifier,
        HoeffdingTreeClassifier,
    )
    from sapwood.corrector.regressor import CorrectedRegressor
    from sapwood.drift.regressor import MonitoredRegressor
    from sapwood.ensemble.adaptive import AdaptiveTreeRegressor
    from sapwood.ensemble.forest import ForestRegressor
    from sapwood.hybrid import HybridRegressor
    from sapwood.intervals import IntervalRegressor
    from sapwood.loss import LossRegressor
    from sapwood.model import load
    from sapwood.moments import Moments
    from sapwood.observers import (
        Candidates,
        EBSTObserver,
        Observer,
        QuantizerObserver,
        Split,
        TEBSTObserver,
    )
    from sapwood.recurring import RecurringRegressor
    from sapwood.screening import ScreenedRegressor
    from sapwood.sparse import SparseRegressor
    from sapwood.storage.container import ModelFileError
    from sapwood.transform import TransformedRegressor
    from sapwood.tree import HoeffdingTreeRegressor
    from sapwood.views import MultiViewRegressor

    __version__: str

__all__ = [
    "AdaptiveTreeClassifier",
    "AdaptiveTreeRegressor",
    "Candidates",
    "CorrectedRegressor",
    "EBSTObserver",
    "ForestClassifier",
    "ForestRegressor",
    "HoeffdingTreeClassifier",
    "HoeffdingTreeRegressor",
    "HybridRegressor",
    "IntervalRegressor",
    "LossRegressor",
    "ModelFileError",
    "Moments",
    "MonitoredRegressor",
    "MultiViewRegressor",
    "Observer",
    "QuantizerObserver",
    "RecurringRegressor",
    "ScreenedRegressor",
    "SparseRegressor",
    "Split",
    "TEBSTObserver",
    "TransformedRegressor",
    "load",
]

_PLACES = {
    "AdaptiveTreeClassifier": "sapwood.classify",
    "ForestClassifier": "sapwood.classify",
    "HoeffdingTreeClassifier": "sapwood.classify",
    "AdaptiveTreeRegressor": "sapwood.ensemble.adaptive",
    "CorrectedRegressor": "sapwood.corrector.regressor",
    "ForestRegressor": "sapwood.ensemble.forest",
    "HoeffdingTreeRegressor": "sapwood.tree",
    "HybridRegressor": "sapwood.hybrid",
    "IntervalRegressor": "sapwood.intervals",
    "LossRegressor": "sapwood.loss",
    "ModelFileError": "sapwood.storage.container",
    "Moments": "sapwood.moments",
    "MonitoredRegressor": "sapwood.drift.regressor",
    "MultiViewRegressor": "sapwood.views",
    "RecurringRegressor": "sapwood.recurring",
    "ScreenedRegressor": "sapwood.screening",
    "SparseRegressor": "sapwood.sparse",
    "TransformedRegressor": "sapwood.transform",
    "load": "sapwood.model",
}
_MODULES = (
    "classify",
    "drift",
    "evaluate",
    "export",
    "hybrid",
    "lags",
    "loss",
    "observers",
    "plot",
    "recurring",
    "report",
    "screening",
    "sparse",
    "streams",
    "transform",
    "tree",
    "views",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        found = getattr(import_module(_PLACES.get(name, "sapwood.observers")), name)
    elif name in _MODULES:
        found = import_module(f"sapwood.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        found = version("sapwood")
    else:
        raise AttributeError(f"module 'sapwood' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *_MODULES, "__version__"})

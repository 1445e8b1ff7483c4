"""Hybrids in adapters for other libraries, which make a new model for each fit."""

import inspect
from typing import Any

from sapwood.hybrid.core import like
from sapwood.hybrid.regressor import HybridRegressor

__all__ = ["new_hybrid"]


def new_hybrid(adapter: Any) -> HybridRegressor:
    """Return an empty hybrid of an adapter's parameters.

    Parameters
    ----------
    adapter : AdapterParameters
        Its `online` is a model or an adapter of one; a new model of the same parameters is used.
    """
    names = inspect.signature(HybridRegressor).parameters
    given = {name: getattr(adapter, name) for name in names}
    online = given.pop("online")
    if hasattr(online, "_new_model"):
        online = online._new_model()
    elif online is not None and hasattr(online, "parameters"):
        online = like(online)
    return HybridRegressor(online, **given)

"""Sapwood: online regression trees that learn from a stream one row at a time."""

from importlib.metadata import version

from sapwood.modelfile import ModelFileError
from sapwood.moments import Moments
from sapwood.observers import (
    Candidates,
    EBSTObserver,
    Observer,
    QuantizerObserver,
    Split,
    TEBSTObserver,
)
from sapwood.tree import HoeffdingTreeRegressor
from sapwood.tree.storage import load

__all__ = [
    "Candidates",
    "EBSTObserver",
    "HoeffdingTreeRegressor",
    "ModelFileError",
    "Moments",
    "Observer",
    "QuantizerObserver",
    "Split",
    "TEBSTObserver",
    "load",
]

__version__ = version("sapwood")

"""Observers: what a leaf watches a feature with."""

from sapwood.observers.class_counts import (
    ClassObserver,
    ClassSplit,
    ExhaustiveClassObserver,
    GaussianClassObserver,
    HistogramClassObserver,
    QuantizerClassObserver,
)
from sapwood.observers.ebst import EBSTObserver, TEBSTObserver
from sapwood.observers.protocol import Candidates, Observer, Split
from sapwood.observers.quantizer import QuantizerObserver

__all__ = [
    "Candidates",
    "ClassObserver",
    "ClassSplit",
    "EBSTObserver",
    "ExhaustiveClassObserver",
    "GaussianClassObserver",
    "HistogramClassObserver",
    "Observer",
    "QuantizerClassObserver",
    "QuantizerObserver",
    "Split",
    "TEBSTObserver",
]

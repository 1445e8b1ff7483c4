"""What follows the stream row by row, and cannot be summed: which shard's is taken over.

The tracker of a tree fades within a few rows. After a round it is that of the shard with the latest
rows, which is the one of the highest number, as shards are numbered in the order of their rows; so
predictions go on from where the rows end. This file is the only place that knows of it.
"""

from typing import Any

from numpy.typing import NDArray

from sapwood.tree._kernel import TreeKernel
from sapwood.tree.checking import check_tracks, doubles

__all__ = ["check_layer", "latest", "layer_of", "set_layer"]

Array = NDArray[Any]


def layer_of(kernel: TreeKernel) -> Array:
    """Return a copy of what follows the stream."""
    return kernel.track_table.copy()


def latest(one: tuple[int, Array], other: tuple[int, Array]) -> Array:
    """Return the layer of the shard with the higher number, each given with its number."""
    return max(one, other, key=lambda each: each[0])[1]


def set_layer(kernel: TreeKernel, layer: Array) -> None:
    """Let a tree follow the stream from there on."""
    kernel.set_tracks(layer.copy())


def check_layer(layer: Array) -> None:
    """Raise ValueError if a layer that comes from elsewhere is none."""
    check_tracks(doubles(layer, (6, 6), "the tracks"))

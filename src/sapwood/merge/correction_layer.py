"""The state that follows the stream row by row and cannot be summed: one shard's replaces it.

The error-correction layer of a tree follows y by its recent errors. After a round it is that of the
shard with the latest rows, which has the highest number, as shards are numbered in the order of
their rows; so predictions continue from the last row. Pending predictions of the tree are kept;
workers start without any. Only this file treats them.
"""

from typing import Any

from numpy.typing import NDArray

from sapwood.corrector._layer import fresh_layer
from sapwood.corrector.checking import check_layer_of
from sapwood.limits import MOST_ROWS
from sapwood.records import check, doubles
from sapwood.tree._kernel import TreeKernel

__all__ = ["check_fits", "check_layer", "latest", "layer_of", "set_layer"]

Array = NDArray[Any]

LAYER_DOUBLES = len(fresh_layer())


def layer_of(kernel: TreeKernel) -> Array:
    """Return a copy of what follows the stream."""
    return kernel.layer_table.copy()


def latest(one: tuple[int, Array], other: tuple[int, Array]) -> Array:
    """Return the layer of the shard with the higher number, each given with its number."""
    return max(one, other, key=lambda each: each[0])[1]


def set_layer(kernel: TreeKernel, layer: Array) -> None:
    """Let a tree follow the stream from there on."""
    kernel.set_layer(layer.copy())


def check_layer(layer: Array, targets: int) -> None:
    """Raise ValueError if layers of so many targets that come from elsewhere are none, or absent."""
    check(
        layer.ndim == 1 and len(layer) in (0, targets * LAYER_DOUBLES),
        "its error-correction layer has another size",
    )
    doubles(layer, layer.shape, "the numbers of its error-correction layer")
    for own in layer.reshape(-1, LAYER_DOUBLES):
        check_layer_of(own, MOST_ROWS)


def check_fits(layer: Array, kernel: TreeKernel) -> None:
    """Raise ValueError if a layer is not such as a tree has."""
    check(layer.shape == kernel.layer_table.shape, "its error-correction layer has another size")

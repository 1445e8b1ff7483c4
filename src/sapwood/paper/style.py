"""How the figures look: the same colour, marker, dash and hatch for an observer everywhere."""

import base64
import io
from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from sapwood.paper.folder import StudyFolder

__all__ = ["Look", "figure", "looks_of", "save", "to_data_uri"]

Dash = str | tuple[int, tuple[int, ...]]

# Okabe and Ito's palette, darkest and lightest apart, so that it survives a grey printer.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "//", "\\\\", "..", "xx", "++", "oo")

SETTINGS: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.hashsalt": "sapwood",
}

DOTS_PER_INCH = 160


class Look(NamedTuple):
    """How one observer is drawn."""

    colour: str
    marker: str
    dash: Dash
    hatch: str


def looks_of(observers: Sequence[str]) -> dict[str, Look]:
    """Give every observer a look of its own.

    - `observers`: their names, in an order that is the same for all figures.
    """
    looks = map(Look, cycle(COLOURS), cycle(MARKERS), cycle(DASHES), cycle(HATCHES))
    return dict(zip(observers, looks, strict=False))


def figure(width: float, height: float) -> Figure:
    """Return an empty figure."""
    return Figure(figsize=(width, height), layout="constrained")


def save(folder: StudyFolder, name: str, drawn: Figure) -> bytes:
    """Write a figure as PNG and SVG, and return the SVG.

    - `folder`: it goes to ``figures`` below it.
    """
    pictures = {}
    for suffix in ("png", "svg"):
        buffer = io.BytesIO()
        stamp = {"Date": None} if suffix == "svg" else {}
        with mpl.rc_context(SETTINGS):
            drawn.savefig(buffer, format=suffix, dpi=DOTS_PER_INCH, metadata=stamp)
        pictures[suffix] = buffer.getvalue()
        folder.write_bytes(f"figures/{name}.{suffix}", pictures[suffix])
    return pictures["svg"]


def to_data_uri(svg: bytes) -> str:
    """Return a picture as an address that contains it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")

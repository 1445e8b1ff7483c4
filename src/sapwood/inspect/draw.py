"""The picture of a tree: a tidy layout, written as SVG without any other program."""

import math
import os
import unicodedata
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Literal, NamedTuple

from sapwood.formatting import number, plain
from sapwood.inspect.view import (
    Limits,
    TreePicture,
    check_limits,
    condition,
    missing_way,
    question,
)
from sapwood.storage.atomic import StrPath, write_atomically
from sapwood.tree.layout import LEAF

__all__ = ["Drawing", "boxes_of", "colour", "draw", "ink_on", "layout_of", "thickness"]

Look = Literal["split", "leaf", "folded"]  # folded: a node stands for all that is below it

# All in pixels.
LARGE, SMALL = 13, 11  # letters
HEIGHT, PADDING, WIDEST = 42.0, 11.0, 250.0  # boxes
THINNEST, THICKEST = 1.25, 9.0  # lines
MARGIN, LEGEND_HEIGHT, LEGEND_WIDTH = 20.0, 56.0, 230.0

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
WIDTHS = {  # in thousandths of the size: the letters of Helvetica that are so wide
    222: "'ijl|",
    278: " !,./:;I[\\]ft·",
    333: '()-`r{}"',
    500: "*Jcksvxyz^",
    556: "#$0123456789?L_abdeghnopqu",
    611: "+<=>~FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    1000: "%W…@",
}
WIDTH_OF = {letter: width for width, letters in WIDTHS.items() for letter in letters}

# From light to dark at an even pace, so that they differ in greyscale and for colour-blind readers.
SCALE = ("#fff7d6", "#b4e0bc", "#6dc4bf", "#3aa2bf", "#297fb4", "#265c9f", "#243c81", "#1b1f5e")
UNKNOWN = "#e4e4e4"


@dataclass(frozen=True)
class Drawing:
    """A picture in SVG: notebooks show it, `save` writes it, `str` returns it."""

    svg: str  # it needs no fonts, scripts or files offset it
    width: int  # in pixels
    height: int

    def save(self, path: StrPath) -> None:
        """Write the picture to a file whose name ends with .svg; an old one is replaced at once."""
        name = os.fsdecode(path)
        if not name.lower().endswith(".svg"):
            raise ValueError(f"path = {name!r}: a name that ends with .svg is expected")
        write_atomically(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{self.svg}\n'.encode())

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.width} x {self.height} pixels)"


class Box(NamedTuple):
    """A node as it is drawn; boxes stand in a list, each before those below it."""

    node: int
    parent: int  # its place in the list, -1 for the root
    depth: int
    look: Look
    title: str
    detail: str
    width: float


class Layout(NamedTuple):
    """Where the boxes are: left, top and width of each; and where each level ends."""

    down: bool  # or to the right
    frames: list[tuple[float, float, float]]
    ends: list[float]
    width: float
    height: float


def draw(
    picture: TreePicture,
    max_depth: int | None = 5,
    *,
    digits: int = 4,
    target: str = "y",
    orientation: Literal["auto", "down", "right"] = "auto",
) -> Drawing:
    """Draw a tree.

    - `max_depth`: nodes at this depth stand for all that is below them; the root is at depth 0.
      With None the whole tree is drawn.
    - `digits`: significant digits of a number. Thresholds get two more.
    - `orientation`: which way the tree grows; "auto" takes the one whose picture has the shorter
      long side.

    Examples
    --------
    >>> from sapwood.inspect.view import sample
    >>> drawing = draw(sample(), target="price")
    >>> drawing
    Drawing(284 x 314 pixels)
    >>> "temp &lt; 12.5" in drawing.svg
    True
    """
    check_limits(max_depth, digits)
    if orientation not in ("auto", "down", "right"):
        raise ValueError(f'orientation = {orientation!r}: "auto", "down" or "right" is expected')
    boxes = boxes_of(picture, max_depth, digits)
    ways = [True, False] if orientation == "auto" else [orientation == "down"]
    layouts = [layout_of(boxes, down) for down in ways]
    layout = min(layouts, key=lambda layout: max(layout.width, layout.height))
    return _svg(picture, boxes, layout, digits, target)


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is, rather too much than too little."""
    thousandths = sum(WIDTH_OF.get(letter) or _unknown_width(letter) for letter in text)
    return thousandths * size / 940  # other fonts are wider; the padding takes the rest


def _unknown_width(letter: str) -> int:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1000 if letter < "\U00010000" else 1250  # the latter are pictures
    return 0 if unicodedata.combining(letter) else 720


def fitted(text: str, size: float, width: float) -> str:
    """Return a text that is not wider than width: cut where it must be.

    Examples
    --------
    >>> fitted("Mississippi", 13, 200), fitted("Mississippi", 13, 50)
    ('Mississippi', 'Missi…')
    """
    if text_width(text, size) <= width:
        return text
    ends = accumulate(text_width(letter, size) for letter in text)
    room = width - text_width("…", size)
    return text[: sum(end <= room for end in ends)].rstrip() + "…"


def boxes_of(picture: TreePicture, max_depth: int | None, digits: int) -> list[Box]:
    """Return the nodes that are shown, with what stands in them."""
    kind, below = picture.columns["kind"], picture.below
    boxes: list[Box] = []
    path: list[int] = []  # the box of the last node at each depth
    for node, depth in picture.walk(max_depth):
        mean, weight = number(below.mean[node], digits), number(below.weight[node], digits)
        look: Look = "leaf"
        title, detail = mean, f"weight {weight}"
        if kind[node] == LEAF:
            title = mean if node or below.weight[0] else "no rows yet"
        elif depth == max_depth:
            look = "folded"
            title, detail = f"… {below.leaves[node]} leaves", f"mean {mean}, weight {weight}"
        else:
            look = "split"
            title, detail = _fitted_question(picture, node, digits), missing_way(picture, node)
        width = max(text_width(title, LARGE), text_width(detail, SMALL)) + 2 * PADDING
        path[depth:] = [len(boxes)]
        parent = path[depth - 1] if depth else -1
        boxes.append(Box(node, parent, depth, look, title, detail, round(width)))
    return boxes


def _fitted_question(picture: TreePicture, node: int, digits: int) -> str:
    """Return the condition of a split; names are shortened first, as the end matters most."""
    room = WIDEST - 2 * PADDING
    for letters in range(40, 4, -2):
        text = question(picture, node, Limits(digits + 2, letters, letters // 10))
        if text_width(text, LARGE) <= room:
            break
    return fitted(text, LARGE, room)


def layout_of(boxes: list[Box], down: bool) -> Layout:
    """Return where nodes are, if the tree grows down, or else to the right."""
    level_gap, box_gap = (46.0, 14.0) if down else (54.0, 10.0)
    widths = [box.width for box in boxes]
    if not down:  # boxes of one look that stand below each other are of one width
        widest: dict[tuple[int, str], float] = {}
        for box in sorted(boxes, key=lambda box: box.width):
            widest[box.depth, box.look] = box.width
        widths = [widest[box.depth, box.look] for box in boxes]
    centres = _tidy(widths if down else [HEIGHT] * len(boxes), boxes, box_gap)
    levels = [0.0] * (max(box.depth for box in boxes) + 1)
    for box, width in zip(boxes, widths, strict=True):
        levels[box.depth] = max(levels[box.depth], HEIGHT if down else width)
    ends = list(accumulate(levels, lambda end, level: end + level_gap + level))
    frames = []
    for box, centre, width in zip(boxes, centres, widths, strict=True):
        start = ends[box.depth] - levels[box.depth]
        x, y = (centre - width / 2, start) if down else (start, centre - HEIGHT / 2)
        frames.append((x, y, width))
    right = max(x + width for x, _, width in frames)
    return Layout(down, frames, ends, right, max(y for _, y, _ in frames) + HEIGHT)


def _tidy(sizes: list[float], boxes: list[Box], gap: float) -> list[float]:
    """Return the centre of each box across the tree, the least edge being at 0.

    After Reingold and Tilford (1981): two subtrees are put as near as their facing contours
    allow, and the parent above the middle. Contours are lists from the deepest level to the root,
    in coordinates of their own, so that two are joined by rewriting the levels of the shallower:
    the time is linear in all.
    """
    low: list[list[float]] = [[] for _ in boxes]  # the contours
    high: list[list[float]] = [[] for _ in boxes]
    origin = [0.0] * len(boxes)  # where the root of a subtree is in the coordinates of its contours
    reach = [0.0] * len(boxes)  # from a parent to either child
    children: list[list[int]] = [[] for _ in boxes]
    for place, box in enumerate(boxes[1:], 1):
        children[box.parent].append(place)
    for place in reversed(range(len(boxes))):
        if children[place]:
            left, right = children[place]
            shared = min(len(low[left]), len(low[right]))
            facing = zip(high[left][-shared:], low[right][-shared:], strict=True)
            apart = max(a - b for a, b in facing) - origin[left] + origin[right] + gap
            if len(low[left]) >= len(low[right]):
                shift = origin[left] + apart - origin[right]
                high[left][-shared:] = [value + shift for value in high[right][-shared:]]
                deep, origin[place] = left, origin[left] + apart / 2
            else:
                shift = origin[right] - apart - origin[left]
                low[right][-shared:] = [value + shift for value in low[left][-shared:]]
                deep, origin[place] = right, origin[right] - apart / 2
            low[place], high[place], reach[place] = low[deep], high[deep], apart / 2
        low[place].append(origin[place] - sizes[place] / 2)
        high[place].append(origin[place] + sizes[place] / 2)
    centres = [origin[0] - min(low[0])]
    for place, box in enumerate(boxes[1:], 1):
        side = -1 if place == children[box.parent][0] else 1
        centres.append(centres[box.parent] + side * reach[box.parent])
    return centres


def _svg(
    picture: TreePicture, boxes: list[Box], layout: Layout, digits: int, target: str
) -> Drawing:
    below = picture.below
    means = [below.mean[box.node] for box in boxes if box.look != "split"]
    finite = list(filter(math.isfinite, means))
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    legend = _legend(low, high, digits, target) if low < high else ""
    top = MARGIN + (LEGEND_HEIGHT if legend else 0)
    inside = max(layout.width, LEGEND_WIDTH if legend else 0)
    width, height = round(inside + 2 * MARGIN), round(layout.height + top + MARGIN)
    nodes = []
    for box, frame in zip(boxes, layout.frames, strict=True):
        mean = below.mean[box.node] if below.weight[0] else math.nan
        fill = "#ffffff" if box.look == "split" else colour(mean, low, high)
        nodes.append(_node(box, frame, fill, _tooltip(picture, box.node, digits)))
    lines = [_line(picture, boxes, place, layout) for place in range(1, len(boxes))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="{SMALL}">',
        f'<path d="M0 0H{width}V{height}H0Z" fill="#ffffff"/>{legend}',
        f'<g transform="translate({_at((width - layout.width) / 2)} {_at(top)})">',
        '<g class="lines" fill="none" stroke="#9b9b9b">',
        *(line for line, _ in lines),
        '</g>\n<g class="answers" fill="#444444">',
        *(answer for _, answer in lines),
        '</g>\n<g class="nodes" text-anchor="middle">',
        *nodes,
        "</g>\n</g>\n</svg>",
    ]
    return Drawing("\n".join(parts), width, height)


def _node(box: Box, frame: tuple[float, float, float], fill: str, tooltip: str) -> str:
    x, y, width = frame
    ink = ink_on(fill)
    rest = "#595959" if box.look == "split" else ink
    shape = 'rx="11" stroke="#8c8c8c"' if box.look == "split" else 'rx="2" stroke="#555555"'
    bold = ' font-weight="bold"' if box.look == "leaf" else ""
    pile = f"M{_at(x + 4)} {_at(y + HEIGHT + 3)}H{_at(x + width + 3)}V{_at(y + 4)}"
    more = f'<path d="{pile}" fill="none" stroke="#555555"/>' if box.look == "folded" else ""
    middle = _at(x + width / 2)
    return (
        f'<g class="{box.look}"><title>{escape(tooltip)}</title>{more}'
        f'<rect x="{_at(x)}" y="{_at(y)}" width="{_at(width)}" height="{_at(HEIGHT)}" {shape} '
        f'fill="{fill}"/><text x="{middle}" y="{_at(y + 18)}" font-size="{LARGE}" fill="{ink}"'
        f'{bold}>{escape(box.title)}</text><text x="{middle}" y="{_at(y + 33)}" fill="{rest}">'
        f"{box.detail}</text></g>"
    )


def _line(picture: TreePicture, boxes: list[Box], place: int, layout: Layout) -> tuple[str, str]:
    """Return the line from a box's parent to it, and its answer on the outer side."""
    node, parent = boxes[place].node, boxes[place].parent
    side = -1 if picture.is_left(node) else 1
    width = thickness(picture, node)
    offset = side * thickness(picture, node - side) / 2  # lines leave a parent side by side
    (x, y, size), (from_x, from_y, from_size) = layout.frames[place], layout.frames[parent]
    if layout.down:
        x, from_x, from_y = x + size / 2, from_x + from_size / 2 + offset, from_y + HEIGHT
        half = _at((from_y + y) / 2)
        line = f"M{_at(from_x)} {_at(from_y)}C{_at(from_x)} {half} {_at(x)} {half}"
        answer_x, answer_y, anchor = x + side * (width / 2 + 5), y - 8, ("end", "start")[side > 0]
    else:
        y, from_x, from_y = y + HEIGHT / 2, from_x + from_size, from_y + HEIGHT / 2 + offset
        end = layout.ends[boxes[parent].depth]
        half = _at((end + x) / 2)
        line = f"M{_at(from_x)} {_at(from_y)}H{_at(end)}C{half} {_at(from_y)} {half} {_at(y)}"
        answer_x, answer_y, anchor = x - 7, y + 3.5 + side * (width / 2 + 8.5), "end"
    return (
        f'<path d="{line} {_at(x)} {_at(y)}" stroke-width="{_at(width)}"/>',
        f'<text x="{_at(answer_x)}" y="{_at(answer_y)}" text-anchor="{anchor}">'
        f"{'yes' if side < 0 else 'no'}</text>",
    )


def thickness(picture: TreePicture, node: int) -> float:
    """Return how thick the line to a node is: by the share of rows that go there."""
    weight = picture.below.weight
    return THINNEST + (THICKEST - THINNEST) * (weight[node] / weight[0] if weight[0] > 0 else 0.0)


def _tooltip(picture: TreePicture, node: int, digits: int) -> str:
    def values(source: dict[str, list[float]], *names: str) -> str:
        return ", ".join(f"{name} {number(source[name][node], digits + 2)}" for name in names)

    columns = picture.columns
    rows = values(columns, "weight", "mean", "deviation")
    place = f"node {node}, depth {columns['depth'][node]}\n{condition(picture, node)}\n"
    if columns["kind"][node] == LEAF:
        watching = "watching" if columns["watching"][node] else "not watching"
        return f"{place}leaf: {columns['model'][node]}, {watching}\n{rows}"
    split = f"condition: {question(picture, node)} ({missing_way(picture, node)})"
    below = values(picture.below._asdict(), "leaves", "weight", "mean")
    return f"{place}{split}\n{values(columns, 'gain')}\nwhen it split: {rows}\nnow below: {below}"


def _legend(low: float, high: float, digits: int, target: str) -> str:
    name, cells = escape(fitted(plain(target), SMALL, 100)), 46
    step = LEGEND_WIDTH / cells
    end, legend = MARGIN + LEGEND_WIDTH, f"colour: mean of {name}, line width: weight"
    parts = [f'\n<g class="legend" fill="#333333"><text x="{_at(MARGIN)}" y="28">{legend}</text>']
    for cell in range(cells):  # from each to the end, so that nothing shines through between
        start, fill = _at(MARGIN + step * cell), colour(cell / (cells - 1), 0, 1)
        parts.append(f'<path d="M{start} 34H{_at(end)}v10H{start}z" fill="{fill}"/>')
    ticks = [(low, MARGIN, "start"), (low / 2 + high / 2, (MARGIN + end) / 2, "middle")]
    for value, x, anchor in [*ticks, (high, end, "end")]:
        text = number(value, digits)
        parts.append(f'<text x="{_at(x)}" y="57" text-anchor="{anchor}">{text}</text>')
    return "".join([*parts, "</g>"])


def colour(value: float, low: float, high: float) -> str:
    """Return the colour of a mean between the least and the largest."""
    if not math.isfinite(value):
        return UNKNOWN
    spread = high / 2 - low / 2
    part = (value / 2 - low / 2) / spread if spread > 0 else 0.25
    place = min(max(part, 0.0), 1.0) * (len(SCALE) - 1)
    first = min(int(place), len(SCALE) - 2)
    pairs = zip(_channels(SCALE[first]), _channels(SCALE[first + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def ink_on(fill: str) -> str:
    """Return black or white, whichever has the larger contrast to a colour."""
    red, green, blue = ((channel / 255) ** 2.2 for channel in _channels(fill))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def _at(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")

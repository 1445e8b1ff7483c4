"""Charts as parts of a page: their text stays text, their colours are the page's."""

import io
import json
import math
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateFormatter, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from sapwood.plot.clock import Along, places_of
from sapwood.plot.intervals import BAND_ID
from sapwood.plot.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    RULE,
    SKY,
    YELLOW,
    axis,
)

__all__ = ["chart", "curves_in_full", "for_json", "inline", "rounded", "zoom_chart"]

WIDTH, HEIGHT = 4.15, 2.55  # inches of 96 pixels
WIDE, TALL = 8.4, 5.0  # of a chart next to two others
LINE, AXIS = "zoomed-line", "zoomed-axis"
"""Parts of a chart that the page draws again when it is zoomed."""

SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "sapwood"}

# The page decides what these are, by day, by night and on paper.
ROLES = {
    INK: "var(--ink)",
    "#000000": "var(--ink)",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREEN: "var(--green)",
    PURPLE: "var(--purple)",
    YELLOW: "var(--yellow)",
    SKY: "var(--sky)",
}

DATES = (AutoDateFormatter, ConciseDateFormatter)
"""What formats the ticks of an axis of days since 1970."""

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
REFERENCE = re.compile(r"url\(#([^)]+)\)")
LONG_NUMBER = re.compile(r"\d+\.\d{3,}")
FONT = re.compile(r"font-family:[^;]*;?\s*")


def chart(
    name: str,
    title: str,
    draw: Callable[..., object],
    *drawn: Any,
    height: float = HEIGHT,
    **options: Any,
) -> str:
    """Return a figure of the page.

    - `draw`, `drawn`, `options`: draws what is to be drawn on an axis, `ax`.
    - `title`: what is above it, and stands for it where it is not seen.
    - `height`: in inches of 96 pixels.
    """
    ax, svg = _drawn(name, title, lambda ax: draw(*drawn, ax=ax, **options), WIDTH, height)
    lines = _lines(ax, WIDTH, height)
    if lines:
        lines["time"] = isinstance(ax.xaxis.get_major_formatter(), DATES)
    data = f'<script type="application/json">{for_json(lines)}</script>' if lines else ""
    return (
        f'<figure class="chart"><figcaption><b>{title}</b></figcaption>'
        f'<div class="plot">{svg}</div>{data}</figure>'
    )


def zoom_chart(
    name: str, title: str, draw: Callable[[Axes], object], data: dict[str, Any], words: str = ""
) -> str:
    """Return a figure whose axis below can be zoomed, in two widths of which one is shown.

    - `data`: the curves in full, as `_lines` returns them, for the page to draw. `band` has the
      places of two curves between which the page shades, `dots` those that are dots, not lines.
    """
    plots = []
    for kind, width, height in (("wide-only", WIDE, TALL), ("narrow-only", WIDTH, HEIGHT)):
        ax, svg = _drawn(f"{name}-{kind}", title, draw, width, height)
        frame = _frame(ax, width, height)
        plots.append(
            f'<div class="plot {kind}">{svg}'
            f'<script type="application/json">{for_json(frame)}</script></div>'
        )
    return (
        f'<figure class="zoom"><figcaption><b>{title}</b><small>{words}</small></figcaption>'
        f"{''.join(plots)}"
        f'<script type="application/json" class="curves">{for_json(data)}</script></figure>'
    )


def _drawn(
    name: str, title: str, draw: Callable[[Axes], object], width: float, height: float
) -> tuple[Axes, str]:
    """Draw on a new axis; return it, and the picture as an element of the page."""
    # Whatever style the caller uses elsewhere, the page has its own.
    with style.context(["default", SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from")  # browsers have more fonts
        ax = axis(None, width, height)
        draw(ax)
        for line in _curves(ax):
            line.set_gid(LINE)
        ax.xaxis.set_gid(AXIS)
        buffer = io.BytesIO()
        figure = cast(Figure, ax.figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return ax, inline(buffer.getvalue().decode(), name, title)


def inline(svg: str, name: str, title: str) -> str:
    """Return an SVG as an element of a page: small, with ids that no other one has.

    - `title`: what it shows, for readers who do not see it.
    """
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("metadata", "}style")):
                parent.remove(child)
    elements = list(root.iter())
    used = {link[1:] for each in elements if (link := each.get(LINK))}
    for each in elements:
        for value in each.attrib.values():
            used.update(REFERENCE.findall(value))
    for each in elements:
        _adopt(each, name, used)
    box = root.get("viewBox", "")
    root.attrib = {"viewBox": box, "role": "img", "aria-label": title}
    for each in elements:
        each.tag = each.tag.removeprefix(SVG)
        if each.tag != "text":
            each.text = None
        each.tail = None
    return ET.tostring(root, encoding="unicode")


def _adopt(element: ET.Element, name: str, used: set[str]) -> None:
    """Rename the ids of an element, and let the page decide its colours and fonts."""
    identity = element.attrib.pop("id", None)
    if identity in (LINE, AXIS, BAND_ID):
        element.set("class", identity)
    elif identity in used:
        element.set("id", f"{name}-{identity}")
    link = element.attrib.pop(LINK, None)
    if link is not None:
        element.set("href", f"#{name}-{link[1:]}")
    for key, value in element.attrib.items():
        element.set(key, REFERENCE.sub(rf"url(#{name}-\1)", _adapted(key, value)))


def _adapted(key: str, value: str) -> str:
    if key == "style":
        value = FONT.sub("", value)
        for colour, role in ROLES.items():
            value = value.replace(colour, role)
    elif key in ("d", "x", "y", "transform"):
        value = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value)
    return value


def _curves(ax: Axes) -> list[Line2D]:
    curves = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    return [line for line in curves if np.size(line.get_xdata()) > 1]


def _lines(ax: Axes, width: float, height: float) -> dict[str, Any]:
    """Return the curves of an axis and where it is, so that the page can show their numbers."""
    curves = _curves(ax)
    if not curves:
        return {}
    return {
        **_frame(ax, width, height),
        "rows": np.asarray(curves[0].get_xdata()).tolist(),
        "lines": [
            {
                "name": str(line.get_label()),
                "colour": ROLES.get(str(line.get_color()), "var(--ink)"),
                "values": [rounded(value) for value in np.asarray(line.get_ydata()).tolist()],
            }
            for line in curves
        ],
    }


def _frame(ax: Axes, width: float, height: float) -> dict[str, Any]:
    """Return where an axis is in its figure, and its ranges."""
    frame = ax.get_position()
    wide, high = 72 * width, 72 * height
    return {
        "frame": [frame.x0 * wide, high * (1 - frame.y1), frame.x1 * wide, high * (1 - frame.y0)],
        "x": [*ax.get_xlim()],
        "y": [*ax.get_ylim()],
    }


def rounded(value: float) -> float | None:
    """Return a number in five digits, None if it is not finite."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def curves_in_full(
    rows: NDArray[Any], along: Along, lines: Sequence[tuple[str, str, str]]
) -> dict[str, Any]:
    """Return curves for `zoom_chart`.

    - `rows`: with the fields row and time, and those that are drawn.
    - `lines`: the name, the field and the colour of each curve.
    """
    if along == "time":
        x = [round(place, 6) for place in places_of(rows["row"], rows["time"], along).tolist()]
    else:
        x = rows["row"].tolist()
    return {
        "time": along == "time",
        "x": x,
        "rows": rows["row"].tolist(),
        "lines": [
            {
                "name": name,
                "colour": f"var(--{colour})",
                "values": [rounded(value) for value in rows[field].tolist()],
            }
            for name, field, colour in lines
        ],
    }


def for_json(value: Any) -> str:
    r"""Return JSON that may stand within a script element, whatever its texts are.

    Examples
    --------
    >>> print(for_json({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")

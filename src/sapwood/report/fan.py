"""A picture of a forecast: the path, and a band for each prediction interval."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.report.html import text

__all__ = ["Fan", "fan_svg"]

FloatArray = NDArray[np.float64]

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 32, 40
LINE, BAND = "#1f6f54", "#7fbfa5"


class Fan(NamedTuple):
    """The forecast of one series.

    - `title`: what is forecast.
    - `labels`: the time of each row.
    - `predictions`: the path.
    - `bounds`: the prediction intervals.
    """

    title: str
    labels: Sequence[str]
    predictions: FloatArray
    bounds: FloatArray | None = None


def fan_svg(fans: Sequence[Fan], levels: Sequence[float] = ()) -> str:
    """Return forecasts as SVG, one below the other.

    - `fans`: the forecast of each series.
    - `levels`: the levels of the prediction intervals.

    Examples
    --------
    >>> picture = fan_svg([Fan("load", ["10:00", "11:00"], np.array([1.0, 2.0]))])
    >>> picture.startswith("<svg"), "load" in picture
    (True, True)
    """
    height = HEIGHT * max(len(fans), 1)
    drawn = [
        f'<g transform="translate(0 {HEIGHT * place})">\n{_drawn(fan, levels)}\n</g>'
        for place, fan in enumerate(fans)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{0.75 * WIDTH:g}pt" '
        f'height="{0.75 * height:g}pt" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#333">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _drawn(fan: Fan, levels: Sequence[float]) -> str:
    predictions, bounds = fan.predictions, fan.bounds
    if len(predictions) == 1:  # a line of one point cannot be seen
        predictions = np.repeat(predictions, 2)
        bounds = None if bounds is None else np.repeat(bounds, 2, axis=0)
    drawn = predictions if bounds is None else np.concatenate([predictions, bounds.ravel()])
    known = drawn[np.isfinite(drawn)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    span = (high - low) or 1.0
    across = np.linspace(LEFT, WIDTH - RIGHT, max(len(predictions), 2))[: len(predictions)]

    def points(places: NDArray[np.float64], values: NDArray[np.float64]) -> str:
        heights = HEIGHT - BOTTOM - (values - low) / span * (HEIGHT - TOP - BOTTOM)
        pairs = zip(places.tolist(), heights.tolist(), strict=True)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs if np.isfinite(y))

    parts = []
    for place in range(0 if bounds is None else bounds.shape[1]):
        assert bounds is not None
        around = np.concatenate([bounds[:, place, 0], bounds[::-1, place, 1]])
        outline = points(np.concatenate([across, across[::-1]]), around)
        parts.append(f'<polygon points="{outline}" fill="{BAND}" fill-opacity="0.35"/>')
    path = points(across, predictions)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="2"/>')
    for value in (low, low + span / 2, low + span):
        y = HEIGHT - BOTTOM - (value - low) / span * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    ends = ((LEFT, "start", fan.labels[:1]), (WIDTH - RIGHT, "end", fan.labels[-1:]))
    for x, anchor, shown in ends:
        for label in shown:
            place_of = f'x="{x}" y="{HEIGHT - 12}" text-anchor="{anchor}"'
            parts.append(f"<text {place_of}>{text(label)}</text>")
    covered = f", intervals of {', '.join(f'{level:g}' for level in levels)}" if levels else ""
    heading = f'<text x="{LEFT}" y="20" font-size="14">{text(fan.title)}{covered}</text>'
    return "\n".join([heading, *parts])

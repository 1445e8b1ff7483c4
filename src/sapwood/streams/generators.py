"""Streams that are computed, to try learners on: any row of them without those before it.

Rows are made in blocks of 4,096, each from draws of its own, so that a stream can be taken up
anywhere, and has the same rows to the last bit however it is cut into chunks. Rows are counted
from 0 in all formulas.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.streams import formulas
from sapwood.streams.formulas import BLOCK, Columns, FloatArray
from sapwood.streams.schema import nearest
from sapwood.streams.stream import MOST_ROWS, Chunk, Kind, Position, Stream, StreamError

__all__ = [
    "GENERATORS",
    "GeneratorStream",
    "demand",
    "friedman",
    "friedman_drift",
    "generator",
    "hyperplane",
    "mv",
    "planes2d",
]

ROWS = 100_000  # by default; endless streams change where those of so many do
LARGEST_SEED = 2**32 - 1  # of one word, so that no other seed and block give the same draws
LARGEST_ROW = 2**32 * BLOCK
LARGEST_NOISE = 1e100
NUMBER: Kind = "number"
CATEGORY: Kind = "category"
QUARTERS = {"gra": (2, 3), "gsg": (2, 3), "lea": (1, 2, 3)}  # of the rows, where changes are


@dataclass(eq=False, kw_only=True)
class GeneratorStream(Stream):
    """A stream that is computed.

    - `name`, `features`, `target`, `size`, `length`, `declared`: as of every `Stream`; `size` and
      `length` are the rows, None if they never end.
    - `make`: returns the columns and targets of a block, given the seed and the number of the
      block.
    """

    seed: int
    parameters: Mapping[str, Any]
    make: Callable[[int, int], tuple[Columns, FloatArray]]

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on; see `Stream.chunks`."""
        position = {"row": 0} if start is None else start
        last = LARGEST_ROW if self.length is None else self.length
        if list(position) != ["row"]:
            raise StreamError(
                f"{self.name} has no position {validation.shown(position)}: give a row"
            )
        row = _whole(self.name, "row", position["row"], 0, last)
        return self._chunks(row, last, _whole(self.name, "most_rows", most_rows, 1, LARGEST_ROW))

    def _chunks(self, row: int, last: int, most_rows: int) -> Iterator[Chunk]:
        while row < last:
            first = row // BLOCK * BLOCK
            columns, y = self.make(self.seed, first // BLOCK)
            end = min(first + BLOCK, last)
            while row < end:
                stop = min(row + most_rows, end)
                part = slice(row - first, stop - first)
                yield Chunk(
                    columns={name: column[part] for name, column in columns.items()},
                    y=y[part],
                    source=self.name,
                    numbers=np.arange(row + 1, stop + 1),
                    next={"row": stop},
                    done=stop,
                )
                row = stop

    @property
    def fingerprint(self) -> str:
        """What `generator` reads, all but the number of rows."""
        values = {"seed": self.seed, **self.parameters}
        return f"{self.name}:" + ",".join(f"{name}={_spelled(v)}" for name, v in values.items())


def _stream(
    name: str,
    kinds: Mapping[str, Kind],
    make: Callable[..., tuple[Columns, FloatArray]],
    rows: int | None,
    seed: int,
    *,
    target: str = "y",
    **parameters: Any,
) -> GeneratorStream:
    length = _length(name, rows)
    return GeneratorStream(
        name,
        kinds,
        target=target,
        size=length,
        length=length,
        seed=_whole(name, "seed", seed, 0, LARGEST_SEED),
        parameters=parameters,
        make=partial(make, **parameters),
    )


def _length(name: str, rows: int | None) -> int | None:
    return None if rows is None else _whole(name, "rows", rows, 1, LARGEST_ROW)


def _changes(
    name: str, changes: Sequence[int] | None, quarters: tuple[int, ...], length: int
) -> tuple[int, ...]:
    """Return the first rows after changes: those given, or at quarters of all rows."""
    if changes is None:
        return tuple(length * quarter // 4 for quarter in quarters)
    given = tuple(changes) if isinstance(changes, Sequence) else (changes,)
    at = tuple(_whole(name, "changes", change, 0, LARGEST_ROW) for change in given)
    if len(at) != len(quarters) or list(at) != sorted(at):
        raise StreamError(
            f"{name}: changes = {validation.shown(changes)}: {len(quarters)} rows in order are expected"
        )
    return at


def _whole(name: str, what: str, value: Any, low: int, high: int) -> int:
    try:
        return validation.whole(value, what, low, high)
    except ValueError as error:
        raise StreamError(f"{name}: {error}") from None


def _below(name: str, what: str, value: Any, high: float) -> float:
    try:
        return validation.between(value, what, 0.0, high)
    except ValueError as error:
        raise StreamError(f"{name}: {error}") from None


def _numbers(first: int, count: int) -> dict[str, Kind]:
    return {f"x{place}": NUMBER for place in range(first, first + count)}


def friedman(rows: int | None = ROWS, seed: int = 1, noise: float = 1.0) -> GeneratorStream:
    """Return Friedman's first function: five of ten features matter.

    y = 10 sin(π x0 x1) + 20 (x2 - 0.5)² + 10 x3 + 5 x4 + noise N(0, 1), where x0 to x9 are uniform
    on [0, 1).

    Parameters
    ----------
    rows : int, optional
        How many; None for a stream without end.
    seed : int
        The same rows for the same seed.
    noise : float
        The standard deviation of the noise.

    References
    ----------
    Friedman, J. H. (1991). Multivariate adaptive regression splines. The Annals of Statistics
    19(1), 1-67.

    Examples
    --------
    >>> x, y = next(iter(friedman(noise=0.0)))
    >>> rest = 20 * (x["x2"] - 0.5) ** 2 + 10 * x["x3"] + 5 * x["x4"]
    >>> bool(abs(y - rest - 10 * np.sin(np.pi * x["x0"] * x["x1"])) < 1e-12)
    True
    """
    noise = _below("friedman", "noise", noise, LARGEST_NOISE)
    return _stream("friedman", _numbers(0, 10), formulas.friedman_block, rows, seed, noise=noise)


def friedman_drift(
    kind: str,
    rows: int | None = ROWS,
    seed: int = 1,
    *,
    noise: float = 1.0,
    changes: Sequence[int] | None = None,
    transition: int | None = None,
) -> GeneratorStream:
    """Return Friedman's first function with concept drift.

    Features, noise and the first concept f(x0, x1, x2, x3, x4) are those of `friedman` with the
    same seed.

    "gra", global recurring abrupt
        From the first change to the second, y = f(x3, x4, x1, x0, x2); then f is back.
    "gsg", global slow gradual
        The first change leads to f(x3, x4, x1, x0, x2), the second to f(x1, x4, x3, x2, x0). Each
        takes `transition` rows, in which the probability that a row is of the next concept rises
        linearly.
    "lea", local expanding abrupt
        In the region x1, x2 < 0.3, x3 > 0.7, x4 < 0.3 the first change leads to
        y = 10 x0 x1 + 20 (x2 - 0.5) + 10 x3 + 5 x4, and in x1, x2 > 0.7, x3 < 0.3, x4 > 0.7 to
        y = 10 cos(x0 x1) + 20 (x2 - 0.5) + exp(x3) + 5 x4². With the second change the regions
        lose their bounds of x4, with the third those of x3.

    Parameters
    ----------
    kind : {"gra", "gsg", "lea"}
        The kind of drift.
    rows, seed, noise
        As of `friedman`.
    changes : sequence of int, optional
        The first row after each change, counted from 0: two, or three if local. As in the paper,
        at 1/2 and 3/4 of the rows, if local at 1/4 too; without end, as of 100,000 rows.
    transition : int, optional
        How many rows a gradual change takes, at most those between the changes. As in the paper,
        1/10 of all.

    Notes
    -----
    river's FriedmanDrift departs from the paper in two ways: its "gra" has x5, which is noise, for
    x4; and in its transitions of "gsg" both concepts are equally likely throughout.

    References
    ----------
    Ikonomovska, E., Gama, J. and Džeroski, S. (2011). Learning model trees from evolving data
    streams. Data Mining and Knowledge Discovery 23(1), 128-168.

    Examples
    --------
    >>> drifting, steady = friedman_drift("gra", rows=100), friedman(rows=100)
    >>> pairs = zip(drifting, steady, strict=True)
    >>> [row for row, (one, other) in enumerate(pairs) if one != other] == list(range(50, 75))
    True
    """
    if kind not in QUARTERS:
        raise StreamError(
            f"there is no drift {validation.shown(kind)}: {nearest(str(kind), QUARTERS)}"
        )
    name = f"friedman-{kind}"
    noise = _below(name, "noise", noise, LARGEST_NOISE)
    length = _length(name, rows) or ROWS
    at = _changes(name, changes, QUARTERS[kind], length)
    parameters: dict[str, Any] = {"noise": noise, "changes": at}
    if kind == "gsg":
        most = at[1] - at[0]
        if transition is None:
            transition = min(length // 10, most)
        parameters["transition"] = _whole(name, "transition", transition, 0, most)
    elif transition is not None:
        raise StreamError(f"{name} changes abruptly: leave transition out, or take friedman-gsg")
    make = partial(formulas.friedman_block, kind=kind)
    return _stream(name, _numbers(0, 10), make, rows, seed, **parameters)


def mv(rows: int | None = ROWS, seed: int = 1) -> GeneratorStream:
    """Return Torgo's artificial "mv": numbers and categories that depend on each other.

    ====  ==========================================================================
    x1    uniform on [-5, 5)
    x2    uniform on [-15, -10)
    x3    "green" if x1 > 0; else "red" (40 %) or "brown" (60 %)
    x4    x1 + 2 x2 if x3 is "green"; else x1 / 2 (30 %) or x2 / 2 (70 %)
    x5    uniform on [-1, 1)
    x6    x4 times a number that is uniform on [0, 5)
    x7    "yes" (30 %) or "no" (70 %)
    x8    "normal" if x5 < 0.5; else "large"
    x9    uniform on [100, 500)
    x10   a whole number from 1000 to 1200
    ====  ==========================================================================

    y has no noise: 35 - x4 / 2 if x2 > 2, which no row is; else 10 - 2 x1 if -2 ≤ x4 ≤ 2; else
    3 - x1 / x4 if x7 is "yes"; else x6 + x1 if x8 is "normal"; else x1 / 2.

    Parameters
    ----------
    rows : int, optional
        How many; None for a stream without end.
    seed : int
        The same rows for the same seed.

    Notes
    -----
    The x10 of river's Mv is not a whole number.

    References
    ----------
    Torgo, L. Regression data sets, https://www.dcc.fc.up.pt/~ltorgo/Regression/mv.html

    Examples
    --------
    >>> x, y = next(row for row in mv() if row[0]["x7"] == "yes" and abs(row[0]["x4"]) > 2)
    >>> y == 3 - x["x1"] / x["x4"]
    True
    """
    features = {**_numbers(1, 10), "x3": CATEGORY, "x7": CATEGORY, "x8": CATEGORY}
    return _stream("mv", features, formulas.mv_block, rows, seed)


def planes2d(rows: int | None = ROWS, seed: int = 1, noise: float = 1.0) -> GeneratorStream:
    """Return Breiman's two planes: x1 selects the plane of a row.

    x1 is -1 or 1, x2 to x10 are -1, 0 or 1, all equally likely. y = 3 + 3 x2 + 2 x3 + x4 if x1 is
    1, and -3 + 3 x5 + 2 x6 + x7 if it is -1; plus noise N(0, 1).

    Parameters
    ----------
    rows, seed, noise
        As of `friedman`.

    References
    ----------
    Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and
    regression trees. Wadsworth.

    Examples
    --------
    >>> x, y = next(row for row in planes2d(noise=0.0) if row[0]["x1"] == 1)
    >>> y == 3 + 3 * x["x2"] + 2 * x["x3"] + x["x4"]
    True
    """
    noise = _below("planes2d", "noise", noise, LARGEST_NOISE)
    return _stream("planes2d", _numbers(1, 10), formulas.planes2d_block, rows, seed, noise=noise)


def hyperplane(
    rows: int | None = ROWS,
    seed: int = 1,
    *,
    features: int = 10,
    drifting: int = 2,
    speed: float = 0.0001,
    noise: float = 0.1,
) -> GeneratorStream:
    """Return the distance of rows from a hyperplane that rotates.

    y = Σ w_i (x_i - 1/2) + noise N(0, 1), where x0, x1, … are uniform on [0, 1) and the weights at
    first too. The first ones then move by `speed` from row to row: up to 1, down to 0, up again.

    Parameters
    ----------
    rows, seed, noise
        As of `friedman`.
    features : int
        How many, up to 1,000.
    drifting : int
        How many weights move.
    speed : float
        How far, below 1.

    Notes
    -----
    The hyperplane of Hulten and others, and of river, is for classification: the class is whether
    y ≥ 0 without noise. Their weights turn round at random, which would need all rows before.

    References
    ----------
    Hulten, G., Spencer, L. and Domingos, P. (2001). Mining time-changing data streams. KDD, 97-106.

    Examples
    --------
    >>> stream = hyperplane(features=3, drifting=1)
    >>> list(stream.features), stream.fingerprint
    (['x0', 'x1', 'x2'], 'hyperplane:seed=1,features=3,drifting=1,speed=0.0001,noise=0.1')
    """
    name = "hyperplane"
    features = _whole(name, "features", features, 1, 1000)
    return _stream(
        name,
        _numbers(0, features),
        formulas.hyperplane_block,
        rows,
        seed,
        features=features,
        drifting=_whole(name, "drifting", drifting, 0, features),
        speed=_below(name, "speed", speed, 1.0),
        noise=_below(name, "noise", noise, LARGEST_NOISE),
    )


def demand(
    rows: int | None = ROWS, seed: int = 7, changes: Sequence[int] | None = None
) -> GeneratorStream:
    """Return the hourly demand of three cities, with categories, missing values and drift.

    Each hour has a row for Bergen, Oslo and Tromsø, from a Monday that is January 1 on. By city,

        temperature = (8, 6, 3) - 10 cos(2π hours / 8760) + 3 cos(2π (hour - 15) / 24) + N(0, 3²)

        usual = (320, 360, 270) + (4, 9, 12) max(15 - temperature, 0)
        + 120 from 17:00 to 22:00 - 40 on weekends and holidays

        y = usual + level, where level[row] = 0.98 level[row - 1] + N(0, 3²)

    With the first change a new tariff moves demand from the evenings, which keep 20 of their 120,
    to the nights: 80 more from 0:00 to 6:00. With the second Oslo begins to grow, until after as
    many rows as lie between the changes its usual demand is half as much again. No feature shows
    the level, one temperature in twenty is missing, and one in a thousand is garbage: 1e9 times
    what it should be.

    Parameters
    ----------
    rows, seed
        As of `friedman`.
    changes : sequence of int, optional
        The first row after each of the two changes, counted from 0. At 1/2 and 3/4 of the rows;
        without end, as of 100,000 rows.

    Examples
    --------
    >>> x, y = next(iter(demand()))
    >>> {**x, "temperature": round(x["temperature"], 1)}, round(y)
    ({'hour': 0.0, 'weekday': 0.0, 'holiday': 1.0, 'temperature': -4.1, 'city': 'Bergen'}, 353)
    """
    numbers = dict.fromkeys(("hour", "weekday", "holiday", "temperature"), NUMBER)
    at = _changes("demand", changes, (2, 3), _length("demand", rows) or ROWS)
    kinds = {**numbers, "city": CATEGORY}
    return _stream("demand", kinds, formulas.demand_block, rows, seed, target="demand", changes=at)


GENERATORS: dict[str, Callable[..., GeneratorStream]] = {
    "friedman": friedman,
    "friedman-gra": partial(friedman_drift, "gra"),
    "friedman-gsg": partial(friedman_drift, "gsg"),
    "friedman-lea": partial(friedman_drift, "lea"),
    "mv": mv,
    "planes2d": planes2d,
    "hyperplane": hyperplane,
    "demand": demand,
}
"""By the names of the command line."""


def generator(spec: str) -> GeneratorStream:
    """Return the generated stream with a name such as "friedman:rows=1000".

    Parameters
    ----------
    spec : str
        A key of `GENERATORS`, and parameters if there are any: "friedman:rows=1e6,seed=3".
        "rows=none" is a stream without end, and several numbers are divided by slashes:
        "friedman-lea:changes=1000/2000/3000".

    Raises
    ------
    StreamError
        If there is no such generator or parameter, or a value is not fit.

    Examples
    --------
    >>> generator("friedman:rows=1e6,seed=3").length
    1000000
    >>> generator("fridman")
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: there is no generator 'fridman': did you mean 'friedman' ...
    """
    name, colon, rest = spec.partition(":")
    if name not in GENERATORS:
        raise StreamError(
            f"there is no generator {validation.shown(name)}: {nearest(name, GENERATORS)}"
        )
    known = list(inspect.signature(GENERATORS[name]).parameters)
    values: dict[str, Any] = {}
    for pair in rest.split(",") if colon else ():
        key, equals, text = pair.partition("=")
        complaint = ""
        if not equals:
            complaint = f"{validation.shown(pair)} gives no parameter a value"
        elif key not in known:
            complaint = f"there is no parameter {validation.shown(key)}: {nearest(key, known)}"
        elif key in values:
            complaint = f"{key} is given twice"
        if complaint:
            raise StreamError(
                f"{name}: {complaint} (as in {name}:{known[0]}=1000; its parameters are "
                f"{', '.join(known)})"
            )
        values[key] = _read(name, key, text)
    return GENERATORS[name](**values)


def _read(name: str, key: str, text: str) -> Any:
    if text.lower() == "none":
        return None
    numbers: list[int | float] = []
    for part in text.split("/"):
        try:
            number = float(part)
            numbers.append(int(number) if number.is_integer() else number)
        except ValueError:
            raise StreamError(
                f"{name}: {key} = {validation.shown(text)} must be a number"
            ) from None
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _spelled(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)

"""The streams that classifiers are compared on: generators of river, bundled data, and CSV files.

Nothing is downloaded. CSV files are looked for where `benchmarks.data_sets` looks; what is not there
is left out.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from river import datasets
from river.datasets import synth
from sklearn.datasets import load_digits

from benchmarks.data_sets import FOLDER

__all__ = ["STREAMS", "ClassStream", "load"]

Row = dict[str, Any]
SHUFFLE_SEED = 0


class ClassStream(NamedTuple):
    """Rows in their order, none of whose values is missing, and their labels."""

    name: str
    rows: list[Row]
    labels: list[str]

    @property
    def classes(self) -> list[str]:
        """The labels, sorted."""
        return sorted(set(self.labels))


def load(name: str, rows: int) -> ClassStream | None:
    """Return the first rows of a stream, or None where its file is not there.

    Parameters
    ----------
    name : str
        A key of `STREAMS`.
    rows : int
        How many; all, if there are fewer.
    """
    found = STREAMS[name](rows)
    if found is None:
        return None
    pairs = list(islice(found, rows))
    return ClassStream(
        name,
        [{str(key): value for key, value in x.items()} for x, _ in pairs],
        [str(y) for _, y in pairs],
    )


def _generated(make: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda rows: make(rows).take(rows)


def _bundled(make: Callable[[], Any]) -> Callable[[int], Any]:
    """Return a data set of river in an order of its own, as some are sorted by class."""

    def found(_: int) -> Iterable[tuple[Row, Any]]:
        pairs = list(make())
        order = np.random.default_rng(SHUFFLE_SEED).permutation(len(pairs))
        return [pairs[place] for place in order]

    return found


def _digits(_: int) -> Iterable[tuple[Row, Any]]:
    data = load_digits()
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(data.target))
    for place in order:
        yield {str(i): v for i, v in enumerate(data.data[place].tolist())}, data.target[place]


def _chessboard(rows: int) -> Iterable[tuple[Row, Any]]:
    """Yield an 8 x 8 chessboard, of which 10 % of the labels are wrong."""
    rng = np.random.default_rng(3)
    X, wrong = rng.random((rows, 2)), rng.random(rows) < 0.1
    black = (np.floor(8 * X).sum(axis=1) % 2 == 1) ^ wrong
    for x, y in zip(X.tolist(), black.tolist(), strict=True):
        yield {str(i): v for i, v in enumerate(x)}, y


def _csv(file: str, target: str, dropped: tuple[str, ...] = (), time: str | None = None) -> Any:
    def found(rows: int) -> Iterable[tuple[Row, Any]] | None:
        path = FOLDER / file
        if not path.exists():
            return None
        with path.open(newline="", encoding="utf-8") as opened:
            read = list(islice(csv.DictReader(opened), rows))
        return ((_row(each, {target, *dropped}, time), each[target]) for each in read)

    return found


def _air_quality(rows: int) -> Iterable[tuple[Row, Any]] | None:
    """Return the hours of Beijing; the label is the class of the air quality index (PM2.5)."""
    found = _csv("beijing_pm25.csv", "pm2.5", ("No", "year", "day"))(10 * rows)
    if found is None:
        return None
    names = ("good", "moderate", "sensitive", "unhealthy", "very unhealthy", "hazardous")
    limits = (12.0, 35.4, 55.4, 150.4, 250.4)
    return (
        (x, names[int(np.searchsorted(limits, float(level)))])
        for x, level in found
        if level != "NA"
    )


def _rising_demand(rows: int) -> Iterable[tuple[Row, Any]] | None:
    """Return the hours of rented bikes; the label is whether more are rented than in 24 hours."""
    found = _csv("bike_hour.csv", "cnt", ("instant", "dteday", "casual", "registered"))(rows)
    return None if found is None else _above_mean(found)


def _above_mean(found: Iterable[tuple[Row, Any]]) -> Iterable[tuple[Row, Any]]:
    last: deque[float] = deque(maxlen=24)
    for x, count in found:
        last.append(float(count))
        yield x, "up" if last[-1] > sum(last) / len(last) else "down"


def _traffic(rows: int) -> Iterable[tuple[Row, Any]] | None:
    """Return the hours of a motorway; the label is how much traffic there is, in four classes."""
    found = _csv("metro_traffic.csv", "traffic_volume")(rows)
    if found is None:
        return None
    limits, names = (1200.0, 3400.0, 4950.0), ("low", "medium", "high", "very high")
    return ((_with_hour(x), names[int(np.searchsorted(limits, float(v)))]) for x, v in found)


def _with_hour(x: Row) -> Row:
    at = datetime.strptime(x["date_time"], "%m/%d/%y %H:%M")
    rest = {name: value for name, value in x.items() if name != "date_time"}
    return {"hour": float(at.hour), "weekday": float(at.weekday()), **rest}


def _row(texts: dict[str, str], dropped: set[str], time: str | None) -> Row:
    found: Row = {}
    for name, text in texts.items():
        if name in dropped:
            continue
        if name == time:
            at = datetime.fromisoformat(text)
            found |= {"hour": at.hour + at.minute / 60, "weekday": float(at.weekday())}
            continue
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = text
    return found


def _changing(make: Callable[[int], Any], first: int, second: int) -> Callable[[int], Any]:
    """Return a stream whose concept is another one in the second half."""

    def found(rows: int) -> Iterable[tuple[Row, Any]]:
        yield from make(first).take(rows // 2)
        yield from make(second).take(rows - rows // 2)

    return found


STREAMS: dict[str, Callable[[int], Any]] = {
    "covtype": _csv("covtype_10k.csv", "Cover_Type"),
    "adult": _csv("adult.csv", "income"),
    "rbf, drift": _generated(
        lambda _: synth.RandomRBFDrift(
            7, 7, n_classes=4, n_features=8, n_centroids=50, change_speed=0.001
        )
    ),
    "led": _generated(lambda _: synth.LED(seed=7, noise_percentage=0.1)),
    "weather": _csv("weather.csv", "target"),
    "sea, drift": _changing(lambda v: synth.SEA(v, seed=7, noise=0.1), 0, 3),
    "digits": _digits,
    "agrawal, drift": _changing(lambda v: synth.Agrawal(v, seed=7), 4, 6),
    "occupancy": _csv("occupancy.csv", "Occupancy", time="Date"),
    "random tree": _generated(
        lambda _: synth.RandomTree(
            7, 7, n_classes=5, n_num_features=6, n_cat_features=3, max_tree_depth=6
        )
    ),
    "image segments": _bundled(datasets.ImageSegments),
    "chessboard": _chessboard,
    "waveform": _generated(lambda _: synth.Waveform(seed=7)),
    "stagger, drift": _changing(lambda v: synth.STAGGER(v, seed=7), 0, 2),
    "phishing": _bundled(datasets.Phishing),
    "hyperplane": _generated(
        lambda _: synth.Hyperplane(seed=7, n_features=10, n_drift_features=4, mag_change=0.002)
    ),
    "bananas": _bundled(datasets.Bananas),
    "led, drift": _changing(
        lambda v: synth.LEDDrift(seed=7, noise_percentage=0.1, n_drift_features=v), 0, 5
    ),
    "rbf": _generated(lambda _: synth.RandomRBF(7, 7, n_classes=6, n_features=10, n_centroids=40)),
    "sine, drift": _changing(lambda v: synth.Sine(v, seed=7), 0, 3),
    "mixed, drift": _changing(lambda v: synth.Mixed(v, seed=7), 0, 1),
    "air quality": _air_quality,
    "rising demand": _rising_demand,
    "traffic": _traffic,
}
"""How each stream is made; the first ones are of all kinds."""

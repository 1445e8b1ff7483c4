"""A hybrid in plain Python: one row after the other, each fit at once, every prediction kept."""

import math
from typing import Any

import numpy as np

import sapwood
from sapwood.hybrid.learners import LightGBM

SLOW, FAST, RATE, RIDGE, HALF = 0.9995, 0.97, 0.999, 25.0, 50.0
TEST_RIDGE, EVERY = 50.0, 4


class Stage:
    """A weight between two predictions."""

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self.square = self.product = self.fast_square = self.fast_product = 0.0
        self.error = self.weight = 0.0
        self.test_square = self.test_product = self.test_error = self.test_weight = 0.0

    def position(self, delay: float) -> float:
        v = self.start
        if self.test_weight > 0:
            ridge = TEST_RIDGE * self.test_error / self.test_weight
            v = shrunk(self.test_product, self.test_square, ridge, v)
        if self.weight <= 0:
            return v
        ridge = RIDGE * (1 + delay / HALF) * self.error / self.weight
        v = shrunk(self.product, self.square, ridge, v)
        return shrunk(self.fast_product, self.fast_square, ridge, v)

    def combined(self, p: float, q: float, delay: float) -> float:
        found = 0.5 * (p + q) + self.position(delay) * 0.5 * (p - q)
        return min(max(found, min(p, q)), max(p, q))

    def update(self, p: float, q: float, issued: float, y: float) -> None:
        d, e = 0.5 * (p - q), y - 0.5 * (p + q)
        self.square = SLOW * self.square + d * d
        self.product = SLOW * self.product + d * e
        self.fast_square = FAST * self.fast_square + d * d
        self.fast_product = FAST * self.fast_product + d * e
        self.error = RATE * self.error + (y - issued) * (y - issued)
        self.weight = RATE * self.weight + 1
        self.test_square *= RATE
        self.test_product *= RATE
        self.test_error *= RATE
        self.test_weight *= RATE

    def test(self, p: float, q: float, found: float, y: float) -> None:
        d, e = 0.5 * (p - q), y - 0.5 * (p + q)
        self.test_square = SLOW * self.test_square + d * d
        self.test_product = SLOW * self.test_product + d * e
        self.test_error = SLOW * self.test_error + (y - found) * (y - found)
        self.test_weight = SLOW * self.test_weight + 1


class NaiveHybrid:
    """Rows are lists of numbers; each has a number, by which its prediction is found again."""

    def __init__(
        self, window: int = 20_000, min_rows: int = 200, rounds: int = 100, frozen: Any = None
    ) -> None:
        self.online, self.corrector = sapwood.ForestRegressor(), sapwood.ForestRegressor()
        start = 0.0 if frozen is None else -1.0
        self.first, self.second = Stage(start), Stage(start)
        self.window, self.min_rows, self.rounds = window, min_rows, rounds
        self.frozen = frozen
        self.unscored = 0  # rows in succession that changed no weight
        self.copies: Any = None  # of the online models, which predict rows that were not issued
        self.X: list[list[float]] = []
        self.y: list[float] = []
        self.batch: Any = frozen
        self.waiting: tuple[int, int] | None = None  # when a fit started, when it is used
        self.started = 0
        self.delays = self.delay_weight = 0.0
        self.issued: dict[int, tuple[float, float, float, float, float, int]] = {}

    @property
    def delay(self) -> float:
        return self.delays / self.delay_weight if self.delay_weight > 0 else 0.0

    def predict(self, number: int, x: list[float]) -> float:
        row = dict(enumerate(x))
        online = self.online.predict_one(row)
        batch = self.batch_prediction(x)
        corrector = self.corrector.predict_one(self.with_batch(row, batch))
        first = last = online
        if not math.isnan(batch):
            first = self.first.combined(online, batch, self.delay)
            last = self.second.combined(corrector, first, self.delay)
        self.issued[number] = online, corrector, batch, first, last, len(self.y)
        return last

    def learn(self, number: int, x: list[float], y: float) -> None:
        row = dict(enumerate(x))
        known = self.issued.pop(number, None)
        batch = self.batch_prediction(x) if known is None else known[2]
        scored = known is not None and not math.isnan(batch)
        self.unscored = 0 if scored else self.unscored + 1
        if scored:
            self.copies = None
        elif self.copies is not None and len(self.y) % EVERY == 0:
            self.test(x, y)
        self.online.learn_one(row, y)
        self.corrector.learn_one(self.with_batch(row, batch), y)
        if scored:
            assert known is not None
            online, corrector, batch, first, last, then = known
            self.first.update(online, batch, first, y)
            self.second.update(corrector, first, last, y)
            self.delays = RATE * self.delays + (len(self.y) - then)
            self.delay_weight = RATE * self.delay_weight + 1
        self.X.append(x)
        self.y.append(y)
        self.fit()

    def test(self, x: list[float], y: float) -> None:
        row, batch = dict(enumerate(x)), self.batch_prediction(x)
        online = self.copies[0].predict_one(row)
        corrector = self.copies[1].predict_one(self.with_batch(row, batch))
        first = self.first.combined(online, batch, self.delay)
        last = self.second.combined(corrector, first, self.delay)
        self.first.test(online, batch, first, y)
        self.second.test(corrector, first, last, y)

    def copy(self) -> None:
        enough = self.unscored >= self.min_rows
        self.copies = (self.online.copy(), self.corrector.copy()) if enough else None

    def fit(self) -> None:
        rows = len(self.y)
        if self.frozen is not None:
            if rows >= self.next_start():
                self.started = rows
                self.copy()
            return
        if self.waiting is not None and rows >= self.waiting[1]:
            stop = self.waiting[0]
            part = slice(max(0, stop - self.window), stop)
            X, y = np.array(self.X[part]), np.array(self.y[part])
            self.batch = LightGBM(rounds=self.rounds).fit(X, y, None)
            self.waiting = None
            self.copy()
        if self.waiting is None and rows >= self.next_start():
            self.waiting = rows, rows + self.lag(rows)
            self.started = rows

    def next_start(self) -> int:
        step = max(self.min_rows, math.ceil(0.25 * min(self.started, self.window)))
        lag = 0 if self.frozen is not None else self.lag(self.started)
        return max(self.started + step, self.started + lag if self.started else 0)

    def lag(self, rows: int) -> int:
        return max(20, min(rows, self.window) // 40)

    def batch_prediction(self, x: list[float]) -> float:
        return math.nan if self.batch is None else float(self.batch.predict(np.array([x]))[0])

    @staticmethod
    def with_batch(row: dict[int, float], batch: float) -> dict[Any, Any]:
        return {**row, "batch.prediction": None if math.isnan(batch) else batch}


def shrunk(product: float, square: float, ridge: float, c: float) -> float:
    return c if square + ridge <= 0 else held((product + ridge * c) / (square + ridge))


def held(v: float) -> float:
    return min(max(v, -1.0), 1.0)

"""Reference implementations of the moments and the observers, in exact rational arithmetic.

A reference keeps every row. Asked for its cuts, it groups the rows by key, and computes each merit
from the rows on either side.
"""

import math
from bisect import bisect_left
from fractions import Fraction

import numpy as np

FINEST_LEVEL, COARSEST_LEVEL = -1074, 1024  # 2**level, from the smallest double to beyond all


def exact_moments(y, w=None):
    """Weight, mean and M2 of the stored doubles: rationals, without any rounding."""
    y = [Fraction(float(value)) for value in y]
    w = [Fraction(1)] * len(y) if w is None else [Fraction(float(weight)) for weight in w]
    n = sum(w, Fraction(0))
    if n == 0:
        return n, n, n
    mean = sum(weight * value for weight, value in zip(w, y, strict=True)) / n
    m2 = sum(weight * (value - mean) ** 2 for weight, value in zip(w, y, strict=True))
    return n, mean, m2


def variance(y, w=None):
    """Population variance."""
    n, _, m2 = exact_moments(y, w)
    return m2 / n


def vr(y, w, left_mask):
    """Reduction of the population variance: s²(all) − n_L/n s²(left) − n_R/n s²(right)."""
    w = np.ones(len(y)) if w is None else np.asarray(w)
    y, left_mask = np.asarray(y), np.asarray(left_mask, dtype=bool)
    n, _, m2 = exact_moments(y, w)
    m2_left = exact_moments(y[left_mask], w[left_mask])[2]
    m2_right = exact_moments(y[~left_mask], w[~left_mask])[2]
    return (m2 - m2_left - m2_right) / n


def merit(y, w, left_mask):
    """Variance reduction; for several targets the mean of its shares of each variance."""
    y = np.asarray(y)
    if y.ndim == 1:
        return vr(y, w, left_mask)
    shares = [
        vr(target, w, left_mask) / variance(target, w) if variance(target, w) else Fraction(0)
        for target in y.T
    ]
    return sum(shares) / len(shares)


class Reference:
    """Keeps all rows; a subclass defines the key of a row, and the position of a split point."""

    def __init__(self, x, y, w=None):
        self.x = [float(value) for value in x]
        self.y = np.asarray(y, dtype=float)
        self.w = np.ones(len(self.x)) if w is None else np.asarray(w, dtype=float)
        self.row_keys = [self.key(value) for value in self.x]
        self.keys = sorted(set(self.row_keys))

    def __len__(self):
        return len(self.keys)

    def key(self, x):
        raise NotImplementedError

    def threshold(self, low, high):
        """Where the cut between two neighbouring keys lies."""
        raise NotImplementedError

    def thresholds(self):
        return [self.threshold(*pair) for pair in zip(self.keys, self.keys[1:], strict=False)]

    def left_of(self, cut):
        """Which rows the cut after the element of that number counts as left."""
        return np.array([key <= self.keys[cut] for key in self.row_keys])

    def merits(self):
        return [merit(self.y, self.w, self.left_of(cut)) for cut in range(len(self) - 1)]

    def best_cut(self):
        """The number of the cut of the largest merit, the first of equals."""
        merits = self.merits()
        return merits.index(max(merits))

    def prototype(self, key):
        """The weighted mean x of an element."""
        mask = np.array([row_key == key for row_key in self.row_keys])
        return exact_moments(np.array(self.x)[mask], self.w[mask])[1]


class QuantizerTwin(Reference):
    """The paper's quantizer: rows whose x has the same floor(x / radius)."""

    def __init__(self, x, y, w=None, *, radius, cut="border"):
        self.radius = radius
        self.cut = cut
        super().__init__(x, y, w)

    def key(self, x):
        slot = math.floor(x / self.radius)
        return -1 if x < 0 and slot == 0 else slot  # the quotient underflowed

    def threshold(self, low, high):
        if self.cut == "prototype":
            return float((self.prototype(low) + self.prototype(high)) / 2)
        border = float(Fraction(low + 1) * Fraction(self.radius))
        while self.key(border) > low:
            border = math.nextafter(border, -math.inf)
        while self.key(border) <= low:
            border = math.nextafter(border, math.inf)
        return border


class AutoTwin(Reference):
    """The quantizer that needs no radius, row by row: slots are (lower, upper) borders."""

    def __init__(self, x, y, w=None, *, slots):
        super().__init__(x, y, w)
        self.most = slots
        self.level = FINEST_LEVEL
        self.keys = []
        for row, value in enumerate(self.x):
            self.seen = row + 1
            if self.slot_of(value) is None:
                self.keys = sorted([*self.keys, (value, math.nextafter(value, math.inf))])
                if len(self) > slots:
                    self.coarsen()
        self.row_keys = [self.slot_of(value) for value in self.x]

    @property
    def radius(self):
        return math.ldexp(1.0, self.level)

    def key(self, x):
        return None

    def slot_of(self, x):
        return next((slot for slot in self.keys if slot[0] <= x < slot[1]), None)

    def threshold(self, low, high):
        """The multiple of the largest power of two that parts the slots."""
        return roundest(low[1], high[0])

    def cells(self, level):
        return len({cell(lower, level) for lower, _ in self.keys})

    def coarsen(self):
        levels = range(self.level, COARSEST_LEVEL + 1)
        # Coarser cells hold finer ones, so the number of cells never grows with the level.
        allowed = max(self.most // 2, 2)
        self.level = levels[bisect_left(levels, -allowed, key=lambda level: -self.cells(level))]
        promises = self.promises()
        while len(self) > self.most - self.most // 16:
            cut = min(self.open_cuts(), key=lambda cut: promises[cut] * self.weight_at(cut))
            low, high = self.keys[cut : cut + 2]
            self.keys[cut : cut + 2] = [common_slot(low[0], high[0])]
            del promises[cut]

    def promises(self):
        y, w = self.y[: self.seen], self.w[: self.seen]
        x = np.array(self.x[: self.seen])
        merits = [merit(y, w, x < upper) for _, upper in self.keys[:-1]]
        best = max(merits)
        return [1 / (Fraction(101, 100) - merit / best) if best else 1 for merit in merits]

    def open_cuts(self):
        """The cuts within a cell whose slots can be merged without a third one."""
        for cut, (low, high) in enumerate(zip(self.keys, self.keys[1:], strict=False)):
            if cell(low[0], self.level) == cell(high[0], self.level):
                lower, upper = common_slot(low[0], high[0])
                if sum(lower <= slot[0] < upper for slot in self.keys) == 2:
                    yield cut

    def weight_at(self, cut):
        (lower, _), (_, upper) = self.keys[cut : cut + 2]
        rows = zip(self.x[: self.seen], self.w, strict=False)
        return sum(Fraction(w) for x, w in rows if lower <= x < upper)


def roundest(low, high):
    """The multiple of the largest power of two from low to high."""
    low, high = Fraction(low), Fraction(high)
    if low <= 0 <= high:
        return 0.0
    unit = Fraction(2) ** COARSEST_LEVEL
    while -(-low // unit) * unit > high:
        unit /= 2
    return float(-(-low // unit) * unit)


def common_slot(low, high):
    """The smallest [h 2^level, (h + 1) 2^level) that holds both."""
    levels = range(FINEST_LEVEL, COARSEST_LEVEL + 1)
    level = levels[bisect_left(levels, True, key=lambda k: cell(low, k) == cell(high, k))]
    lower = cell(low, level) * Fraction(2) ** level
    return float(lower), float(lower + Fraction(2) ** level)


def cell(x, level):
    return math.floor(Fraction(float(x)) / Fraction(2) ** level)


class EBSTTwin(Reference):
    """An element for each different x, and cuts midway between neighbours."""

    def key(self, x):
        return x + 0.0

    def threshold(self, low, high):
        middle = float((Fraction(low) + Fraction(high)) / 2)
        return middle if low < middle else high


class TEBSTTwin(EBSTTwin):
    """The same on x as NumPy rounds it."""

    def __init__(self, x, y, w=None, *, digits=3):
        self.digits = digits
        super().__init__(x, y, w)

    def key(self, x):
        return float(np.round(x, self.digits)) + 0.0

"""Reference implementations of the change detector and the drift monitor."""

import math
from collections import Counter

HELD, MEMORY, FIRST_ROWS, FIRST_HELD, SLACK = 4.0, 2000, 200, 30, 0.02
SHIFTS = (0.1, 0.2, 0.4)
DIRECTIONS = {"both": (1, -1), "up": (1,), "down": (-1,)}


def changes(values, once_in, direction="both"):
    """Return (row, since, before, after) of each change that is reported."""
    sides = [(sign, shift) for sign in DIRECTIONS[direction] for shift in SHIFTS]
    found, start = [], 0
    while start < len(values):
        taken, change = _first_change(values[start:], once_in, sides)
        if change is not None:
            since, before, after = change
            found.append((start + taken, start + since, before, after))
        start += taken
    return found


def _first_change(values, once_in, sides):
    mean = variance = 0.0
    evidence = dict.fromkeys(sides, 0.0)
    page = {side: {"sum": 0.0} for side in sides}
    for place, value in enumerate(values):
        deviation = math.sqrt(variance)
        held = value
        if place >= FIRST_HELD:
            held = min(max(value, mean - HELD * deviation), mean + HELD * deviation)
        if place >= FIRST_ROWS:
            u = (
                (held - mean) / deviation
                if deviation > 0
                else HELD * ((value > mean) - (value < mean))
            )
            for sign, shift in sides:
                gain = shift * sign * u - shift**2 / 2 - SLACK * shift
                evidence[sign, shift] = (1 + evidence[sign, shift]) * math.exp(gain)
                own = page[sign, shift]
                if own["sum"] <= 0:
                    own.update(sum=0.0, since=place + 1, before=mean)
                own["sum"] += gain
            if sum(evidence.values()) / len(sides) >= once_in:
                best = page[max(evidence, key=evidence.get)]
                later = values[best["since"] - 1 : place + 1]
                return place + 1, (best["since"], best["before"], sum(later) / len(later))
        share = 1 / min(place + 1, MEMORY)
        variance = (1 - share) * (variance + share * (held - mean) ** 2)
        mean += share * (held - mean)
    return len(values), None


# -- the distribution of a column, recent rows compared with the rows before -----------------------

BLOCK, COUNTED, RECENT, FIRST, REMEMBERED, PRIOR, DRAWN = 100, 50, 4, 500, 1e6, 0.5, 100
SPANS, SPAN, SPAN_MEMORY, LARGEST_JUMP = 7, 4, 50, 8
DOUBT, CAUTION, SETTLED, EXTRAPOLATED, LEAST_SAMPLES = 0.5, 0.75, 2, 2, 3


class Column:
    """A column whose bins are any hashable things, and stay what they are; rows come one by one."""

    def __init__(self, bin_of, row=0):
        self.bin_of, self.row = bin_of, row
        self.block, self.recent, self.before = Counter(), [], Counter()
        self.weight = self.evidence = self.likeliest = 0.0
        self.overdispersion, self.spans = [0.0] * SPANS, [0] * SPANS
        self.parts = [[] for _ in range(SPANS)]  # blocks of the span of each length
        self.since = self.last_bin = None
        self.known = self.turns = 0

    def see(self, value, limit):
        """Add a value; return whether drift is detected."""
        place = self.row % BLOCK
        if place % 2 == (place // 2 * 2654435761 % 2**32) // 2**31:  # one of each pair
            bin = self.bin_of(value)
            self.block[bin] += 1
            self.turns += self.known > 0 and bin != self.last_bin
            self.known += 1
            self.last_bin = bin
        self.row += 1
        if self.row % BLOCK:
            return False
        drifted = self.weight >= FIRST and self.weigh(limit)
        self.weigh_spans()
        self.recent.append(self.block)
        if len(self.recent) > RECENT:
            if self.weight > REMEMBERED:
                share = 1 - COUNTED / REMEMBERED
                self.weight *= share
                self.before = Counter({bin: share * own for bin, own in self.before.items()})
            self.before.update(self.recent.pop(0))
            self.weight += COUNTED
        self.block = Counter()
        return drifted

    @property
    def all_rows(self):
        return self.before + sum(self.recent, Counter()) + self.block

    def weigh(self, limit):
        recent = sum(self.recent, Counter())
        bins = list(self.all_rows)
        before = {
            bin: (self.before[bin] + PRIOR) / (self.weight + PRIOR * len(bins)) for bin in bins
        }
        after = {
            bin: (recent[bin] + DRAWN * before[bin]) / (recent.total() + DRAWN) for bin in bins
        }
        gain = sum(own * math.log(after[bin] / before[bin]) for bin, own in self.block.items())
        gain -= COUNTED * (len(bins) - 1) / self.weight
        gain -= CAUTION * (len(bins) - 1) * (max(self.overdispersion[0], 1) - 1)
        gain /= self.whole_overdispersion(len(bins))
        self.evidence = (1 + self.evidence) * math.exp(min(max(gain, -200), 200))
        if self.likeliest <= 0:
            self.likeliest, self.since = 0.0, self.row - 2 * BLOCK + 1
        self.likeliest += gain
        return self.evidence >= limit

    def whole_overdispersion(self, bins):
        """The factor by which counts vary more than those of independent rows."""
        known = [length for length in range(SPANS) if self.spans[length] >= LEAST_SAMPLES]
        longest = max(known, default=0)
        own = [max(each, 1) for each in self.overdispersion]
        growths = [
            own[length] / (own[length - 1] if length else 1) * self.certainty(length, bins)
            for length in range(longest + 1)
        ]
        growth = growths[longest] if longest >= SETTLED else max(1, *growths, 1)
        growth = min(growth, SPAN)
        found = max([1, *(self.overdispersion[length] for length in known)])
        if growth > 1:
            further = EXTRAPOLATED + max(SETTLED - longest, 0)
            found = max(found, own[longest] * growth**further)
        total = self.all_rows.total()
        diversity = 1 - sum((rows / total) ** 2 for rows in self.all_rows.values())
        return max(found, 2 * self.known * diversity / max(self.turns, 1) - 1)

    def certainty(self, length, bins):
        freedom = min(self.spans[length], SPAN_MEMORY) * max(bins - 1, 1)
        return 1 - DOUBT * math.sqrt(2 / freedom) if freedom else 0

    def weigh_spans(self):
        """Weigh the block, and all spans that are full with it."""
        span, rows = self.block, COUNTED
        for length in range(SPANS):
            found = self.dispersion(span, rows)
            if found is not None:
                found = min(found, LARGEST_JUMP * max(self.overdispersion[length], 1))
                self.spans[length] += 1
                step = min(self.spans[length], SPAN_MEMORY)
                self.overdispersion[length] += (found - self.overdispersion[length]) / step
            if length + 1 == SPANS:
                return
            self.parts[length + 1].append(span)
            if len(self.parts[length + 1]) < SPAN:
                return
            span, rows = sum(self.parts[length + 1], Counter()), rows * SPAN
            self.parts[length + 1] = []

    def dispersion(self, span, rows):
        """Chi² / degrees of freedom of a span against all other rows; None if these are few."""
        others = self.all_rows - span
        if others.total() < rows:
            return None
        bins = [bin for bin in self.all_rows if others[bin] + span[bin] > 0]
        total = others.total()
        found = sum(
            (span[bin] / rows - others[bin] / total) ** 2
            / ((others[bin] + span[bin]) / (rows + total))
            for bin in bins
        )
        return found * rows * total / (rows + total) / (len(bins) - 1) if len(bins) > 1 else 1.0

"""A slow and obvious twin of the detector of change."""

import math
from collections import Counter

HELD, MEMORY, FIRST_ROWS, FIRST_HELD, SLACK = 4.0, 2000, 200, 30, 0.02
SHIFTS = (0.1, 0.2, 0.4)
DIRECTIONS = {"both": (1, -1), "up": (1,), "down": (-1,)}


def changes(values, once_in, direction="both"):
    """Return (row, since, before, after) of each change that is told."""
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
            if deviation > 0:
                u = (held - mean) / deviation
            else:
                u = HELD * ((value > mean) - (value < mean))
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


# -- the distribution of a column, lately against before -------------------------------------------

BLOCK, COUNTED, RECENT, SUPER, FIRST, REMEMBERED, PRIOR, DRAWN = 100, 50, 4, 8, 500, 1e4, 0.5, 100


class Column:
    """A column whose bins are any hashable things; rows come one by one."""

    def __init__(self, bin_of, row=0):
        self.bin_of, self.row = bin_of, row
        self.block, self.recent, self.before, self.all_of = Counter(), [], Counter(), Counter()
        self.weight = self.evidence = self.likeliest = 0.0
        self.unrest = self.super_unrest = 1.0
        self.super_block = []
        self.since = None

    def see(self, value, limit):
        """Take a value in; return whether that is an alarm."""
        place = self.row % BLOCK
        if place % 2 == (place // 2 * 2654435761 % 2**32) // 2**31:  # one of each pair
            self.block[self.bin_of(value)] += 1
        self.row += 1
        if self.row % BLOCK:
            return False
        alarm = self.weight >= FIRST and self.weigh(limit)
        self.recent.append(self.block)
        if len(self.recent) > RECENT:
            if self.weight > REMEMBERED:
                share = 1 - COUNTED / REMEMBERED
                self.weight *= share
                self.before = Counter({bin: share * own for bin, own in self.before.items()})
            self.before.update(self.recent.pop(0))
            self.weight += COUNTED
        self.block = Counter()
        return alarm

    def weigh(self, limit):
        lately = sum(self.recent, Counter())
        bins = list({*self.before, *lately, *self.block})
        before = {
            bin: (self.before[bin] + PRIOR) / (self.weight + PRIOR * len(bins)) for bin in bins
        }
        after = {
            bin: (lately[bin] + DRAWN * before[bin]) / (lately.total() + DRAWN) for bin in bins
        }
        gain = sum(own * math.log(after[bin] / before[bin]) for bin, own in self.block.items())
        gain -= COUNTED * (len(bins) - 1) / self.weight
        gain /= max(self.unrest, self.super_unrest)
        self.evidence = (1 + self.evidence) * math.exp(min(max(gain, -200), 200))
        if self.likeliest <= 0:
            self.likeliest, self.since = 0.0, self.row - 2 * BLOCK + 1
        self.likeliest += gain
        spread = sum((self.block[b] - COUNTED * p) ** 2 / (COUNTED * p) for b, p in before.items())
        self.unrest = follow(self.unrest, spread, bins)
        self.super_block.append(self.block)
        if len(self.super_block) == SUPER:
            counts, rows = sum(self.super_block, Counter()), SUPER * COUNTED
            spread = sum(
                (counts[b] - rows * p) ** 2 / (rows * p * (1 + rows / self.weight))
                for b, p in before.items()
                if counts[b] or self.before[b]
            )
            self.super_unrest, self.super_block = follow(self.super_unrest, spread, bins), []
        return self.evidence >= limit


def follow(unrest, spread, bins):
    ratio = max(1.0, spread / (len(bins) - 1)) if len(bins) > 1 else 1.0
    return unrest + 0.04 * (min(ratio, 4 * unrest) - unrest)

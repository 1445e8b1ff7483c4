"""A slow and obvious twin of the detector of change."""

import math

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

"""What is known of the units of columns once more, slow and obvious; `_units.pxd` has the rules."""

import math

SAMPLED, MEMORY, LEAST_SAMPLES, CLOSER = 128, 128, 16, 6
AS_LIKELY = 4 / 3


def hashed(number):
    """The finalizer of SplitMix64, in whole numbers."""
    number = (number + 0x9E3779B97F4A7C15) % 2**64
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) % 2**64
    return number ^ (number >> 31)


def is_sample(row):
    """Whether a row, counted from 0, is a sample."""
    return hashed(row) % SAMPLED == 3


class NaiveUnits:
    """Range, exponentially weighted mean and variance, and usual step of samples of a column."""

    def __init__(self):
        self.values, self.mean, self.variance = [], None, 0.0
        self.step = self.recent = self.ties = 0.0

    def add(self, x, jump):
        self.values.append(x)
        if self.mean is None:
            self.mean = x
            return
        share = 1 / min(len(self.values), MEMORY)
        self.ties += share * (float(jump == 0) - self.ties)
        if jump > 0:
            before = self.recent or jump
            self.recent = 0.75 * before + 0.25 * jump
        if jump == 0 or CLOSER * jump >= self.step or len(self.values) < LEAST_SAMPLES:
            variance = self.variance + share * (x - self.mean) ** 2
            self.variance = (1 - share) * variance
            self.mean = (1 - share) * self.mean + share * x
            if jump > 0:
                self.step = (1 - share) * self.step + share * jump if self.step else jump

    @property
    def told(self):
        """As the fields of UNITS_RECORD."""
        return {
            "samples": len(self.values),
            "low": min(self.values),
            "high": max(self.values),
            "mean": self.mean,
            "variance": self.variance,
            "last": self.values[-1],
            "step": self.step,
            "lately": self.recent,
            "ties": self.ties,
        }


def find_map(before, deviation, values, kind):
    """How values of some mean and deviation became others: scale and shift."""
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))
    ratio = {"scale": mean / before, "shift": 1.0, "both": spread / deviation}[kind]
    power = 10.0 ** round(math.log10(ratio))
    scale = power if 1 / AS_LIKELY < ratio / power < AS_LIKELY else ratio
    if kind == "scale":
        return scale, 0.0
    return scale, roundest(mean - scale * before, spread / math.sqrt(len(values)))


def roundest(value, uncertainty):
    """The nearest multiple of the coarsest step 1 or 5 times 10 ** k, twice as fine as is known."""
    if abs(value) <= uncertainty:
        return 0.0
    steps = [digit * 10.0**k for k in range(-12, 13) for digit in (1, 5)]
    step = max(step for step in steps if step <= 2 * uncertainty * (1 + 1e-12))
    return round(value / step) * step

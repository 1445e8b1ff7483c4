"""A slow, obvious form of the linear model of sparse rows: a dict, without a limit of memory."""


class NaiveSparse:
    """Weights by name; a text is two names, of which one contains the text."""

    def __init__(self):
        self.weights, self.variances, self.scales = {}, {}, {}
        self.labels = []  # y and weight of each row
        self.constant = self.uncertain = None
        self.noise = self.noise_weight = self.mean_terms = 0.0

    @staticmethod
    def terms(x):
        found = {}
        for name, value in x.items():
            if isinstance(value, str):
                found[name] = found[name, value] = 1.0
            elif value:  # neither None nor 0
                found[name] = float(value)
        return found

    def z(self, name, value):
        scale = self.scales.get(name, 0.0)
        return max(-1.0, min(1.0, value / scale)) if scale else 0.0

    def _sum(self, x):
        return self.constant + sum(
            self.weights.get(name, 0.0) * self.z(name, value)
            for name, value in self.terms(x).items()
        )

    def predict(self, x):
        if not self.labels:
            return 0.0
        y = [label for label, _ in self.labels]
        return max(min(y), min(max(y), self._sum(x)))

    def learn(self, x, y, w):
        prediction, terms = self.predict(x), self.terms(x)
        if not self.labels:
            self.constant = y
        error = y - self._sum(x)
        self.labels.append((y, w))
        for name, value in terms.items():
            self.scales[name] = max(self.scales.get(name, 0.0), abs(value))
        z = {name: self.z(name, value) for name, value in terms.items()}
        size = 1.0 + sum(each**2 for each in z.values())
        self.mean_terms += max(0.01, 1.0 / len(self.labels)) * (size - self.mean_terms)
        total = sum(weight for _, weight in self.labels)
        mean = sum(weight * label for label, weight in self.labels) / total
        variance = sum(weight * (label - mean) ** 2 for label, weight in self.labels) / total
        if len({label for label, _ in self.labels}) < 2:
            return prediction
        prior = 2.0 * variance / self.mean_terms
        if self.uncertain is None:
            self.uncertain = prior
        for name in terms:
            self.variances.setdefault(name, prior)
        explained = self.uncertain + sum(self.variances[name] * z[name] ** 2 for name in terms)
        noise = variance
        if self.noise_weight:
            noise = max(self.noise / self.noise_weight, 1e-3 * variance)
        gain = 1.0 / (explained + noise / w)
        for name in terms:
            v = self.variances[name]
            self.weights[name] = self.weights.get(name, 0.0) + v * z[name] * gain * error
            self.variances[name] = self._lowered(v, z[name], gain, prior)
        self.constant += self.uncertain * gain * error
        self.uncertain = self._lowered(self.uncertain, 1.0, gain, prior)
        self.noise = 0.999 * self.noise + w * 0.5 * error**2 * (1 + noise / (explained + noise))
        self.noise_weight = 0.999 * self.noise_weight + w
        return prediction

    @staticmethod
    def _lowered(v, z, gain, prior):
        after = max(0.0, v - (v * z) ** 2 * gain)
        return min(after / 0.998, max(prior, after))

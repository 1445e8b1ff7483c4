"""How splits of several targets read categories of many, once more, slow and obvious."""

import numpy as np

REPEATED_ROWS, STEPS = (
    256,
    32,
)  # rows of categories that had been seen; steps of the power iteration


class Encodings:
    """The numbers by which splits read the categories of a feature: None while there are none.

    Parameters
    ----------
    faces : list of Face
        The targets, each of which knows the levels of the categories.
    name : str
        Of the feature.
    """

    def __init__(self, faces, name):
        self.faces, self.name = faces, name
        self.weights, self.numbers = None, {}

    def of(self, code):
        return self.numbers.get(code, self.numbers.get("new"))

    def learn(self, code, units):
        """Follow the levels, which have learned a row of a category."""
        if self.weights is None:
            row = self.faces[0].row_weight
            repeats = [face.many[self.name][1].weight for face in self.faces]
            if max(repeats) < REPEATED_ROWS * row:
                return
            self.weights = self.component(units)
            known = {code for face in self.faces for code in face.levels[self.name]}
            self.numbers = {each: self.number(each) for each in (*known, "new")}
        elif code is not None:
            self.numbers |= {each: self.number(each) for each in (code, "new")}

    def number(self, code):
        levels = [face.level(self.name, code) or 0.0 for face in self.faces]
        return sum(w * level for w, level in zip(self.weights, levels, strict=True))

    def component(self, units):
        """The first principal component of the levels, in the units of merits."""
        codes = sorted({code for face in self.faces for code in face.levels[self.name]})
        rows = np.array([self.row(code) for code in codes]) * np.sqrt(units)
        masses = np.array([self.mass(code) for code in codes])
        covariance = rows.T @ (rows * masses[:, None])
        lead = int(np.argmax(np.diag(covariance)))
        found = np.sqrt(np.diag(covariance)) * np.where(covariance[lead] < 0, -1.0, 1.0)
        for _ in range(STEPS):
            found = covariance @ found
            found = found / abs(found).max()
        return found * np.sqrt(units)

    def row(self, code):
        """The levels of a category from that of all; 0 of a target that was never seen."""
        pairs = [(face.level(self.name, code), face.many[self.name][0]) for face in self.faces]
        return [0.0 if level is None else level - whole.mean for level, whole in pairs]

    def mass(self, code):
        own = [face.levels[self.name].get(code) for face in self.faces]
        return sum(each.weight for each in own if each)

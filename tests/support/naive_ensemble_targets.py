"""Reference implementations of the multi-target forest and adaptive tree.

As in `naive_ensemble`, the trees are the library's own. Each target has an object (a voice) that
combines and scores its predictions. Shares of variances decide which tree is replaced.
"""

import math

import numpy as np

import naive_drift
import naive_ensemble
from naive_tree import Moments
from sapwood.corrector._layer import ErrorCorrectionLayer


class Voice:
    """What an ensemble knows of a target."""

    def __init__(self, track, members):
        self.track, self.members, self.rows, self.seen = track, members, 0, Moments()
        self.errors, self.sizes = {}, {}  # by the numbers of trees
        self.begin()

    def begin(self):
        """Remember nothing but the mean, as long as there is no y."""
        self.layer = ErrorCorrectionLayer() if self.track else None
        self.begun, self.usual, self.low, self.high = self.rows, 0.0, None, None
        self.theta = np.full(self.members, 1 / self.members)
        self.products, self.joint = np.zeros((self.members, self.members)), np.zeros(self.members)
        self.square = self.weight = 0.0

    def unit(self):
        """One over the variance since all began."""
        return 1 / self.seen.variance if self.seen.variance > 1e-200 else 0.0

    def error(self, tree):
        """The recent mean squared error of a tree; None if it has none."""
        size = self.sizes.get(tree.number, 0.0)
        return self.errors[tree.number] / size if size else None

    def see_error(self, tree, error, fade, w):
        number = tree.number
        self.errors[number] = fade * self.errors.get(number, 0.0) + w * error**2
        self.sizes[number] = fade * self.sizes.get(number, 0.0) + w

    def held(self, y, prediction):
        error = y - prediction
        limit = max(1000.0 * self.usual, (0.25 * (self.high - self.low)) ** 2)
        square = error * error
        if square > limit > 0 and self.rows - self.begun >= 100:
            square = limit
            y = prediction + math.copysign(math.sqrt(limit), error)
        self.usual += (square - self.usual) / 1000.0
        return y


class SeveralTargets:
    """What both share; a mixin before the ensembles of one target."""

    def set_up(self, targets, members):
        self.targets = targets
        self.voices = {name: Voice(self.track, members) for name in targets}
        for tree in self.trees:
            tree.has_seen_target = set()

    def predict_learn(self, x, y, w=1.0):
        """Return the prediction of each target, and learn the targets that are not None."""
        predicted = {name: self.spoken(name, x) for name in self.targets}
        together, prediction, corrected, notes = {}, {}, {}, {}
        for name, voice in self.voices.items():
            is_first = voice.rows == voice.begun
            together[name] = (
                predicted[name][0] if is_first else self.combined(voice, predicted[name])
            )
            prediction[name] = corrected[name] = together[name]
            notes[name] = None
            if voice.layer is not None and not is_first:
                (prediction[name],), notes[name] = voice.layer.predict(np.array([together[name]]))
                corrected[name] = notes[name][0, -1]
        present = [name for name in self.targets if y.get(name) is not None]
        sums = {"error": [], "lead": [], "gain": []}
        for name in present:
            voice, value = self.voices[name], y[name]
            if voice.rows == voice.begun:
                voice.low, voice.high, voice.seen = value, value, Moments()
            else:
                value = voice.held(value, corrected[name])
                for tree, each in zip(self.trees, predicted[name], strict=True):
                    if name in tree.has_seen_target:
                        voice.see_error(tree, value - each, self.error_fade, w)
                self.score_weights(voice, predicted[name], together[name], value, w)
                if voice.unit():
                    self.tally(sums, name, predicted[name], value - corrected[name], value)
            if voice.layer is not None:
                voice.layer.learn(
                    np.array([together[name]]), np.array([value]), notes[name], np.array([w])
                )
            voice.low, voice.high = min(voice.low, value), max(voice.high, value)
            voice.rows += 1
            voice.seen.add(value, w)
        self.watch_row(sums, w)
        for tree in self.trees:
            before = tree.model._kernel.rows
            tree.learn(self.seed, self.rows, x, y, w)
            if tree.model._kernel.rows > before:
                tree.has_seen_target |= set(present)
        self.rows += 1
        if self.rows % self.interval == 0:
            self.look()
        return prediction

    def spoken(self, name, x):
        """The predictions of all trees for a target; other trees stand in for those without any."""
        raw = [
            tree.predict(x)[name] if name in tree.has_seen_target else None for tree in self.trees
        ]
        known = [value for value in raw[:-1] if value is not None]
        if not known and raw[-1] is not None:
            known = [raw[-1]]
        others = np.mean(known) if known else self.voices[name].seen.mean
        return [others if value is None else value for value in raw]

    def tally(self, sums, name, predicted, error, y):
        unit, waiting = self.voices[name].unit(), self.trees[-1]
        sums["error"].append(abs(error) * math.sqrt(unit))
        if name not in waiting.has_seen_target:
            return
        waits = (y - predicted[-1]) ** 2
        sums["lead"].append(((y - predicted[0]) ** 2 - waits) * unit)
        if self.rows >= waiting.born + 100:
            sums["gain"].append((error**2 - waits) * unit)

    def watch_row(self, sums, w):
        if sums["error"]:
            self.errors.append((self.rows, np.mean(sums["error"])))
        if sums["lead"]:
            lead = sum(sums["lead"])
            self.lead = 0.999 * self.lead + w * lead
            self.lead_square = 0.999 * self.lead_square + w * lead**2
        if sums["gain"]:
            gain = sum(sums["gain"])
            self.gain = 0.999 * self.gain + w * gain
            self.gain_square = 0.999 * self.gain_square + w * gain**2

    def begin(self):
        super().begin()
        self.lead = self.lead_square = 0.0
        for voice in getattr(self, "voices", {}).values():
            voice.begin()

    def look(self):
        before = set(self.trees)
        super().look()
        for tree in set(self.trees) - before:
            tree.has_seen_target = set()

    def is_changed(self, since=-1):
        found = naive_drift.changes([error for _, error in self.errors], 1e6, "up")
        if not found:
            return False
        count, first, before, after = found[-1]
        row = self.errors[count - 1][0]  # with which it was noticed
        changed = row - (count - first)
        stir = after * (row + 1 - changed) + sum(error for _, error in self.errors[count:])
        rows = self.rows - changed
        return changed > since and rows >= 100 and stir > 2 * rows * before

    def shares(self, trees):
        """The mean over targets, with errors of the candidate tree, of error shares."""
        waiting = self.trees[-1]
        counted = [
            voice
            for voice in self.voices.values()
            if voice.unit() and voice.error(waiting) is not None
        ]
        found = []
        for tree in trees:
            known = [v for v in counted if v.error(tree) is not None]
            own = [v.error(tree) * v.unit() for v in known]
            found.append(np.mean(own) if own else math.inf)
        return found


class Forest(SeveralTargets, naive_ensemble.Forest):
    def __init__(self, targets, members, **parameters):
        super().__init__(members, **parameters)
        self.set_up(targets, members)

    def combined(self, voice, predicted):
        members = np.array(predicted[:-1])
        mean = members.mean()
        blended = mean + voice.theta @ (members - mean)
        return float(np.clip(blended, min(members.min(), mean), max(members.max(), mean)))

    def score_weights(self, voice, predicted, together, y, w):
        members = np.array(predicted[:-1])
        beyond, rest = members - members.mean(), y - members.mean()
        voice.products = 0.9995 * voice.products + w * np.outer(beyond, beyond)
        voice.joint = 0.9995 * voice.joint + w * beyond * rest
        voice.square = 0.9995 * voice.square + w * (y - together) ** 2
        voice.weight = 0.9995 * voice.weight + w
        if voice.rows - voice.begun < 10 or voice.rows % 10 == 0:
            ridge = voice.square / voice.weight / 0.2**2
            count = len(members)
            for _ in range(2):
                for i in range(count):
                    others = voice.products[i] @ voice.theta
                    others -= voice.products[i, i] * voice.theta[i]
                    curvature = voice.products[i, i] + ridge
                    if curvature > 0:
                        best = (voice.joint[i] + ridge / count - others) / curvature
                        voice.theta[i] = np.clip(best, 0.0, 1.0)

    def beaten(self, age):
        if age < 1_000:
            return None
        *errors, last = self.shares(self.trees)
        for place, tree in enumerate(self.trees[:-1]):
            errors[place] = -1.0 if tree.role == "leaf" else errors[place]
        worst = int(np.argmax(errors))
        return worst if last < errors[worst] else None

    def are_lost(self):
        growing = [tree for tree in self.trees[:-1] if tree.role != "leaf"]
        (last,) = self.shares(self.trees[-1:])
        return sum(error > 2 * last for error in self.shares(growing)) > len(growing) / 2


class AdaptiveTree(SeveralTargets, naive_ensemble.AdaptiveTree):
    def __init__(self, targets, **parameters):
        super().__init__(**parameters)
        self.set_up(targets, 1)

    def combined(self, voice, predicted):
        main, other = (voice.error(tree) for tree in self.trees)
        if self.rows - self.trees[1].born < 250 or not other or not main:
            return predicted[0]
        return predicted[0] + (predicted[1] - predicted[0]) / (1 + (other / main) ** 4)

    def score_weights(self, voice, predicted, together, y, w):
        """There is none."""

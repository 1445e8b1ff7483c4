"""The tree of several targets once more, slow and obvious: a plain twin for each target.

Each face of the tree predicts and learns one target. They have the same shape, as none of them
decides when to split, and where: that they do together, by the mean of the shares of variance that
a cut explains. Of a row without their y they see all but the y.
"""

import naive_tree
from naive_layer import Layer, Memory
from naive_leaf import Categories, Cut, Moments, Slots, Sums, merit_of
from naive_tree import NaiveTree, Node
from naive_trial import round_cut


class Face(NaiveTree):
    """One target of several."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.all_rows, self.memory, self.seen = 0, Memory(), Moments()
        self.most_codes = naive_tree.OTHERS

    def become_many(self, name):
        """All labels from the 64th on count as one."""

    def register(self, x):
        super().register(x)
        for labels in self.labels.values():
            labels.update({label: min(code, self.most_codes) for label, code in labels.items()})

    def known_values(self, codes):
        return {name: value for name, value in codes.items() if value is not None}

    def attempt(self, leaf):
        """A face never decides."""

    def say(self, x):
        """What is said of a row; a note is left, too, of one of which nothing is known yet."""
        leaf, row, _ = self.find(x)
        said, note = 0.0, None
        if self.rows:
            experts, said, _ = self.look(leaf, row)
            if self.track:
                said, saying = self.layer.say(said)
                note = saying, experts, self.rows
        if self.track and self.all_rows:
            self.memory.leave(self.known_values(row), self.all_rows, note)
        return said

    def take(self, x, y, w):
        """Learn a row, whose y may be missing; return its leaf."""
        predicted_from = self.known_values(self.find(x)[1])  # before it brings something new
        self.register(x)
        leaf, row, _ = self.find(x)
        self.see_decimals(row)
        note = self.memory.take(predicted_from, self.all_rows) if self.track else None
        if y is None:
            self.pass_by(leaf, row, w)
        else:
            self.learn_y(leaf, row, y, w, note)
        self.all_rows += 1
        leaf.all_rows += 1
        return leaf

    def pass_by(self, leaf, row, w):
        for name, value in row.items():
            leaf.watches[name].add(value, w, None, None)
        leaf.models.learn_row(self.terms(leaf, row), w, leaf.all_rows)

    def terms(self, leaf, row):
        values = dict(row)
        for name, levels in self.levels.items():
            values[name] = levels[row[name]].mean if row[name] in levels else None
        return leaf.models.standardise(values.values())

    def learn_y(self, leaf, row, y, w, note):
        if self.rows == 0:
            self.low = self.high = y
            self.layer = Layer(y)
            for each in self.leaves:
                each.mean = y
                each.models.betas = [[y, *beta[1:]] for beta in each.models.betas]
        said, tree, z = self.look(leaf, row)
        then = said
        if self.rows:
            y = self.held_near(y, self.layer.say(tree)[0] if self.track else tree)
        if self.rows and self.track:
            then = self.recall(note, said, y, w)
            self.layer.follow(tree, y, w)
        self.rows, self.weight = self.rows + 1, self.weight + w
        self.low, self.high = min(y, self.low), max(y, self.high)
        self.seen.add(y, w)
        errors = [y - each for each in said]
        residual = errors[min(self.explaining, key=leaf.errors.__getitem__)]
        fade = naive_tree.FADE
        leaf.errors = [fade * old + w * e**2 for old, e in zip(leaf.errors, errors, strict=True)]
        shares = [(e**2 + (y - each) ** 2) / 2 for e, each in zip(errors, then, strict=True)]
        leaf.said = [fade * old + w * each for old, each in zip(leaf.said, shares, strict=True)]
        leaf.mean_weight += w
        leaf.mean += errors[0] * w / leaf.mean_weight
        ahead = (leaf.all_rows + 1) / (leaf.rows + 1)  # P learns from all rows
        leaf.models.learn(z, errors[1:], w, leaf.all_rows, ahead)
        leaf.rows += 1
        leaf.y.add(y, w)
        leaf.residual.add(residual, w)
        for name, value in row.items():
            leaf.watches[name].add(value, w, y, residual)
            if name in self.levels and value is not None:
                self.levels[name].setdefault(value, Moments()).add(y, w)

    def split_by(self, leaf, name, lefts, missing_left):
        """Make two leaves of one, by the places of a feature that go left."""
        watch = leaf.watches[name]
        leaf.missing_left = missing_left
        leaf.cut = Cut(0.0, -1, name, None)
        leaf.codes = {place: place in lefts for place in watch.places}
        is_number = isinstance(watch, Slots)
        leaf.threshold = None
        if is_number:
            leaf.threshold = round_cut(watch.border(max(lefts) + 1), self.decimals.get(name))
        for is_left in (True, False):
            side = Sums.of(
                [(p, sums) for p, sums in watch.places.items() if (p in lefts) == is_left]
            )
            watches = {each: own.child() for each, own in leaf.watches.items()}
            if is_number:
                at = [(slot in lefts) == is_left for slot, _ in watch.elements()]
                watches[name] = watch.child(slice(at.index(True), at.index(True) + sum(at)))
            leaf.children += (Node(watches, self.grace_period, leaf, side),)
            leaf.children[-1].all_rows = 0
        self.leaves = [each for each in self.leaves if each is not leaf] + [*leaf.children]


class Together:
    """What all targets know of a leaf: mean variances, as shares of those over the whole tree."""

    def __init__(self, faces, nodes, due):
        self.faces, self.nodes, self.rows = faces, nodes, 0
        self.depth = nodes[0].depth
        self.children = ()
        self.start(due)

    def start(self, due):
        self.due, self.next_review, self.weight = due, due, 0.0
        for node in self.nodes:
            node.y, node.residual = Moments(), Moments()

    @property
    def units(self):
        """One over the variance of each target; 0 where there is none."""
        return [1 / face.seen.variance if face.seen.variance else 0.0 for face in self.faces]

    @property
    def known(self):
        return sum(unit > 0 for unit in self.units) or 1

    def mean_share(self, squares):
        total = sum(unit * square for unit, square in zip(self.units, squares, strict=True))
        return total / (self.known * self.weight)

    @property
    def y(self):
        share = self.mean_share([node.y.m2 for node in self.nodes])
        return Variance(self.weight, share)

    @property
    def residual(self):
        share = self.mean_share([node.residual.m2 for node in self.nodes])
        return Variance(self.weight, share)


class Variance:
    def __init__(self, weight, variance):
        self.weight, self.variance = weight, variance


class NaiveTargets(NaiveTree):
    """The parameters are those of the tree; `targets` are the names of the columns of y."""

    def __init__(self, targets, **parameters):
        super().__init__(**parameters)
        self.targets, self.may_try = targets, False
        self.faces = [Face(**parameters) for _ in targets]
        for face in self.faces:
            face.root.all_rows = 0
        self.root = Together(
            self.faces, [face.root for face in self.faces], naive_tree.FIRST_REVIEW
        )
        self.leaves = [self.root]

    def predict(self, x):
        said = [face.say(x) for face in self.faces]
        return dict(zip(self.targets, said, strict=True)) if self.rows else said[0]

    def learn(self, x, y, w=1.0):
        pairs = zip(self.targets, self.faces, strict=True)
        nodes = [face.take(x, y.get(name), w) for name, face in pairs]
        leaf = next(each for each in self.leaves if each.nodes == nodes)
        if self.rows == 0:
            leaf.due, leaf.next_review = leaf.due * w, leaf.next_review * w
        self.rows, self.weight, leaf.rows = self.rows + 1, self.weight + w, leaf.rows + 1
        leaf.weight += w
        if leaf.weight >= leaf.due:
            self.attempt(leaf)

    def is_outdated(self, leaf):
        known = [node for node in leaf.nodes if node.rows]
        return all(super(NaiveTargets, self).is_outdated(node) for node in known)

    def start_anew(self, leaf):
        leaf.start(naive_tree.FIRST_REVIEW * self.weight / self.rows)
        for face, node in zip(self.faces, leaf.nodes, strict=True):
            for name, labels in face.labels.items():
                node.watches[name] = Categories() if labels else face.watch_number()

    def review(self, leaf):
        for face, node in zip(self.faces, leaf.nodes, strict=True):
            own, node.rows = node.rows, leaf.rows  # whoever has many rows looks at scales again
            face.review(node)
            node.rows = own

    def cuts(self, leaf, measure):
        """All cuts that leave enough on either side; of categories, in the order of any target."""
        for name, watch in self.offered(leaf.nodes[0].watches).items():
            is_number = isinstance(watch, Slots)
            kind = measure if is_number else measure.replace("line", "step")
            orders = [[place for place, _ in watch.elements(measure)]] if is_number else []
            for node, unit in zip(leaf.nodes, leaf.units, strict=True):
                if (
                    not is_number
                    and unit
                    and any(s.weight for s in node.watches[name].places.values())
                ):
                    orders.append(self.order(node.watches[name], measure))
            present = sum(sums.rows for sums in watch.places.values())
            for order in orders:
                for after in range(len(order) - 1):
                    lefts = order[: after + 1]
                    left = sum(watch.places[place].rows for place in lefts)
                    if self.min_share * present <= min(left, present - left):
                        merit = self.merit(leaf, name, lefts, kind)
                        yield Cut(merit, frozenset(lefts), name, measure)

    @staticmethod
    def order(watch, measure):
        """The places of a category in the order of a target's means; the mean where it is none."""
        together = Sums.of(list(watch.places.items())).mean(measure)
        means = {p: s.mean(measure) if s.weight else together for p, s in watch.places.items()}
        return sorted(sorted(means), key=means.get)

    def merit(self, leaf, name, lefts, kind):
        explained = []
        for node in leaf.nodes:
            places = sorted(node.watches[name].places.items())
            left = [(p, s) for p, s in places if p in lefts]
            right = [(p, s) for p, s in places if p not in lefts]
            weights = [Sums.of(side).weight for side in (left, right)]
            squares = 0.0
            if min(weights) > 0:
                squares = merit_of(left, right, kind) * sum(weights)
            explained.append(squares)
        return leaf.mean_share(explained)

    def split(self, leaf, cut, _goes_left=None):
        watches = [node.watches[cut.feature] for node in leaf.nodes]
        sides = [
            [
                Sums.of([(p, s) for p, s in watch.places.items() if (p in cut.after) == is_left])
                for is_left in (True, False)
            ]
            for watch in watches
        ]
        missing_left = sides[0][0].rows >= sides[0][1].rows
        told = [
            (unit, pair, watch.missing)
            for unit, pair, watch in zip(leaf.units, sides, watches, strict=True)
            if watch.missing.weight and pair[0].weight and pair[1].weight
        ]
        if told:
            far = [
                sum(
                    unit * (pair[side].mean(cut.measure) - missing.mean(cut.measure)) ** 2
                    for unit, pair, missing in told
                )
                for side in (0, 1)
            ]
            missing_left = far[0] <= far[1]
        leaf.cut, leaf.missing_left = cut, missing_left
        leaf.gain, leaf.known_then = cut.merit * leaf.weight, leaf.known
        for face, node in zip(self.faces, leaf.nodes, strict=True):
            face.split_by(node, cut.feature, cut.after, missing_left)
        leaf.threshold, leaf.codes = leaf.nodes[0].threshold, leaf.nodes[0].codes
        for side in (0, 1):
            nodes = [node.children[side] for node in leaf.nodes]
            leaf.children += (Together(self.faces, nodes, self.grace_period),)
        self.leaves = [each for each in self.leaves if each is not leaf] + [*leaf.children]
        self.splits.append(leaf)

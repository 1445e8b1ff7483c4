"""The three classifiers: a tree, an adaptive tree and a forest."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from sapwood.classify.classifier import Classifier
from sapwood.classify.leaves import Merit
from sapwood.classify.not_offered import NotOffered
from sapwood.ensemble.adaptive import AdaptiveTreeRegressor
from sapwood.ensemble.forest import ForestRegressor
from sapwood.regressor import Regressor
from sapwood.tree.bounds import SplitBoundName
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.tree.settings import Leaf, Track
from sapwood.validation import Label

ClassLeaf = Leaf | Literal["majority"]
TreeLeaf = ClassLeaf | Literal["naive_bayes", "naive_bayes_adaptive"]

__all__ = ["AdaptiveTreeClassifier", "ForestClassifier", "HoeffdingTreeClassifier"]


def _given(names: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an `__init__`, of all its local names."""
    return {name: each for name, each in names.items() if name not in ("self", "__class__")}


class HoeffdingTreeClassifier(Classifier):
    """A Hoeffding tree for classification, with linear models in its leaves.

    Each class is a target that is 1 in its rows and 0 in all others (two classes are one target),
    and a multi-target tree predicts them: a split reduces the Gini impurity of classes. Predictions
    become calibrated probabilities, by the labels of predictions that were issued. Classes need not
    be declared: a label may be new at any row.

    Parameters
    ----------
    grace_period : float, optional
        The weight of the rows that a leaf sees before it may split. By default 200 with two classes
        and 100 with more.
    leaf : {"adaptive", "linear", "mean", "majority", "naive_bayes", "naive_bayes_adaptive"}
        What leaves predict, as of `HoeffdingTreeRegressor`; "majority" is "mean": the shares of
        classes in a leaf, the predicted class being the most frequent one, as in VFDT. Leaves of
        naive Bayes have a normal distribution of each number and class, and counts of categories;
        those of "naive_bayes_adaptive" predict the most frequent class where that was right more
        often.
    merit : {"gini", "information_gain"}, optional
        If given, leaves split as those of VFDT: when the reduction of Gini's impurity or of the
        entropy by one feature is ahead of that by any other by Hoeffding's bound. For leaves
        without linear models.
    delta, tau, min_share, max_depth, split_bound, track, categorical, no_splits
        As of `HoeffdingTreeRegressor`. With three classes and more, `delta`, `tau` and `split_bound`
        have no effect: a split needs evidence that it separates classes, which depends on how many classes
        there are, but not that it is better than those of all other features.
    max_bytes : int, optional
        The memory limit of the classifier.
    class_weight : "balanced" or dict, optional
        How much rows of each class count: a dict of labels and factors (1 for a label that it does
        not name), or "balanced", N / (K n) for a row of a class of weight n among K classes and
        rows of weight N so far. Probabilities are those of a stream with such weights.
    cost : dict, optional
        What wrong predictions cost: a dict of labels and the cost of missing each, or of actual
        labels with a dict of predicted labels and costs; 1 if not named. The predicted class is
        that of the least expected cost. Probabilities do not change.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((5000, 2))
    >>> y = np.where(X[:, 0] < 0.3, "low", np.where(X[:, 1] < 0.5, "left", "right"))
    >>> tree = HoeffdingTreeClassifier()
    >>> predicted = tree.predict_learn_many(X, y)
    >>> bool(np.mean(predicted[-1000:] == y[-1000:]) > 0.95)
    True
    >>> tree.predict_one({0: 0.1, 1: 0.9})
    'low'
    >>> tree.learn_one({0: 0.9, 1: 0.9}, "new")
    >>> sorted(tree.predict_proba_one({0: 0.9, 1: 0.9}))
    ['left', 'low', 'new', 'right']

    VFDT, as it was published:

    >>> vfdt = HoeffdingTreeClassifier(leaf="majority", merit="information_gain", delta=1e-7)
    >>> predicted = vfdt.predict_learn_many(X, y)
    >>> bool(np.mean(predicted[-1000:] == y[-1000:]) > 0.9)
    True

    References
    ----------
    P. Domingos and G. Hulten, "Mining high-speed data streams", KDD 2000.
    """

    kind: ClassVar[str] = "HoeffdingTreeClassifier"
    format: ClassVar[int] = 3
    regressor: ClassVar[type[Regressor]] = HoeffdingTreeRegressor

    def __init__(
        self,
        *,
        grace_period: float | None = None,
        delta: float = 1e-3,
        tau: float = 0.05,
        min_share: float = 0.02,
        max_depth: int | None = None,
        leaf: TreeLeaf = "adaptive",
        split_bound: SplitBoundName = "hoeffding",
        merit: Merit | None = None,
        track: Track = "auto",
        max_bytes: int | None = None,
        categorical: Iterable[Label] = (),
        no_splits: Iterable[Label] = (),
        class_weight: str | Mapping[Any, float] | None = None,
        cost: Mapping[Any, Any] | None = None,
    ) -> None:
        super().__init__(_given(locals()))


class AdaptiveTreeClassifier(Classifier):
    """A Hoeffding tree for classification that adapts to concept drift.

    Parameters
    ----------
    threads : int, optional
        The number of threads that learn a batch.
    grace_period, delta, tau, min_share, max_depth, leaf, split_bound, track, max_bytes
        As of `HoeffdingTreeClassifier`.
    categorical, no_splits, class_weight, cost
        As of `HoeffdingTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(1).random((8000, 2))
    >>> y = X[:, 0] < X[:, 1]
    >>> y[4000:] = ~y[4000:]  # all is different from here on
    >>> model = AdaptiveTreeClassifier()
    >>> predicted = model.predict_learn_many(X, y)
    >>> bool(np.mean(predicted[-1000:] == y[-1000:]) > 0.95)
    True
    """

    kind: ClassVar[str] = "AdaptiveTreeClassifier"
    format: ClassVar[int] = 3
    regressor: ClassVar[type[Regressor]] = AdaptiveTreeRegressor

    def __init__(
        self,
        *,
        threads: int | None = None,
        grace_period: float | None = None,
        delta: float = 1e-3,
        tau: float = 0.05,
        min_share: float = 0.02,
        max_depth: int | None = None,
        leaf: ClassLeaf = "adaptive",
        split_bound: SplitBoundName = "hoeffding",
        track: Track = "auto",
        max_bytes: int | None = None,
        categorical: Iterable[Label] = (),
        no_splits: Iterable[Label] = (),
        class_weight: str | Mapping[Any, float] | None = None,
        cost: Mapping[Any, Any] | None = None,
    ) -> None:
        super().__init__(_given(locals()))


class ForestClassifier(Classifier):
    """A forest for classification: randomly weighted trees, combined by their errors.

    Half of the members with random weights split early, whether or not the split reduces the
    impurity, and so find classes that depend on several features together.

    Parameters
    ----------
    members : int
        The number of members.
    seed : int
        The seed of the random weights.
    threads : int, optional
        The number of threads that learn a batch.
    grace_period, delta, tau, min_share, max_depth, leaf, split_bound, track, max_bytes
        As of `HoeffdingTreeClassifier`.
    categorical, no_splits, class_weight, cost
        As of `HoeffdingTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(1).normal(size=(4000, 4))
    >>> y = np.argmax(X[:, :3] + 0.3 * X[:, [3]], axis=1)
    >>> forest = ForestClassifier(members=5)
    >>> predicted = forest.predict_learn_many(X, y)
    >>> bool(np.mean(predicted[-1000:] == y[-1000:]) > 0.9)
    True
    >>> forest
    <ForestClassifier(members=5): 3 classes, 5 members, ... leaves, 4000 rows learned>
    """

    kind: ClassVar[str] = "ForestClassifier"
    format: ClassVar[int] = 3
    regressor: ClassVar[type[Regressor]] = ForestRegressor
    draw = NotOffered("it has several trees; draw a member, as in forest.model.member(0).draw()")

    def __init__(
        self,
        *,
        members: int = 10,
        seed: int = 1,
        threads: int | None = None,
        grace_period: float | None = None,
        delta: float = 1e-3,
        tau: float = 0.05,
        min_share: float = 0.02,
        max_depth: int | None = None,
        leaf: ClassLeaf = "adaptive",
        split_bound: SplitBoundName = "hoeffding",
        track: Track = "auto",
        max_bytes: int | None = None,
        categorical: Iterable[Label] = (),
        no_splits: Iterable[Label] = (),
        class_weight: str | Mapping[Any, float] | None = None,
        cost: Mapping[Any, Any] | None = None,
    ) -> None:
        super().__init__(_given(locals()))

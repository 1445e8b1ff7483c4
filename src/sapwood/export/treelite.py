"""A tree or an ensemble as a model of treelite."""

from typing import Any

from sapwood.export.flat import FlatTree, codes_in, needed
from sapwood.export.flat_model import flatten_model
from sapwood.model import Readable
from sapwood.tree.layout import LEAF, NUMBER

__all__ = ["to_treelite"]

NAME = "treelite's trees"


def to_treelite(tree: Readable) -> Any:
    """Return a `treelite.Model` that predicts as a tree or an ensemble does now.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor, or an ensemble
        With ``leaf="mean"``. What recent errors add (`track`) is contained in the leaves of a tree;
        an ensemble is to have ``track=None``, and no member of a weight below 0.

    Returns
    -------
    treelite.Model
        Of doubles. It reads what `encode` returns, categories and missing values among it:
        ``treelite.gtil.predict(model, encode(tree, X))[:, 0, 0]`` is ``tree.predict_many(X)``: of a
        tree bit for bit, of an ensemble except for rounding.

    Raises
    ------
    ExportError
        If leaves are linear models, or the prediction of an ensemble is not the sum of its trees'
        predictions.

    Examples
    --------
    >>> import numpy as np, treelite
    >>> from sapwood.export import encode
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor(leaf="mean")
    >>> tree.learn_many({"city": ["Oslo", "Rome", "Lima"] * 500}, [2.0, 8.0, 1.0] * 500)
    >>> X = {"city": ["Rome", "Lima", "Bonn", None]}
    >>> exported = treelite.gtil.predict(to_treelite(tree), encode(tree, X))[:, 0, 0]
    >>> np.array_equal(exported, tree.predict_many(X))
    True
    """
    model = flatten_model(tree)
    trees = model.summands(NAME)
    builders = needed("treelite.model_builder", "treelite", "to_treelite")
    builder = builders.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=builders.Metadata(
            num_feature=len(model.names),
            task_type="kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=builders.TreeAnnotation(
            num_tree=len(trees), target_id=[0] * len(trees), class_id=[0] * len(trees)
        ),
        postprocessor=builders.PostProcessorFunc(name="identity"),
        base_scores=[0.0],
    )
    for each in trees:
        _add_tree(builder, each)
    return builder.commit()


def _add_tree(builder: Any, flat: FlatTree) -> None:
    """Add a tree to the builder."""
    builder.start_tree()
    values, weight = flat.constants(NAME).tolist(), flat.weight.tolist()
    for node, kind in enumerate(flat.kind.tolist()):
        builder.start_node(node)
        if kind == LEAF:
            builder.leaf(values[node])
        else:
            _test(builder, flat, node)
            builder.gain(float(flat.gain[node]))
        builder.sum_hess(weight[node])
        builder.end_node()
    builder.end_tree()


def _test(builder: Any, flat: FlatTree, node: int) -> None:
    """Add the test of a node to the builder."""
    ways = {
        "feature_id": int(flat.feature[node]),
        "default_left": bool(flat.missing_left[node]),
        "left_child_key": int(flat.left[node]),
        "right_child_key": int(flat.right[node]),
    }
    if flat.kind[node] == NUMBER:
        builder.numerical_test(threshold=float(flat.threshold[node]), opname="<", **ways)
    else:
        builder.categorical_test(
            category_list=codes_in(flat.subset[node]), category_list_right_child=False, **ways
        )

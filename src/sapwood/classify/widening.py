"""A model that has met another class: the same trees, with one more target.

A class that was never seen is a target that was always 0. Such a target has the same weights as all
others, and nothing else but zeros, so that the tables of a model can be widened at any row: from
then on it is the model that would have known the class from its first row on, to the last bit
(linear models of categories aside, which have a covariance of their own for each class).

Two classes are one target: 1 in the rows of the second. With the third class it becomes two, of
which the first is its mirror image; the corrector and predictions that wait for labels start over.
Splits on features of more than 63 categories go on reading the levels of the second class.
"""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._layer import fresh_layer, layer_parts
from sapwood.corrector._pending import PendingPredictions
from sapwood.ensemble import ensemble_state
from sapwood.ensemble._ensemble import EnsembleKernel
from sapwood.ensemble.ensemble import Ensemble
from sapwood.ensemble.ensemble_state import STREAM as ENSEMBLE_STREAM
from sapwood.ensemble.layout import TARGET_RECORD
from sapwood.ensemble.one_target import SUMS
from sapwood.model import State
from sapwood.records import Records
from sapwood.rows.features import TARGETS
from sapwood.tree import memory, restoring, tree_state
from sapwood.tree._column_tables import ENCODING_HEAD, GRID_DOUBLES, encoding_table_rows
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import (
    CODES,
    LEAF,
    STREAM,
    TARGET_COST,
    TARGET_LEAF,
    TARGET_NODE,
    TARGET_STREAM,
    TARGET_TRIAL,
    no_trial,
)
from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["reordered", "restore_latest", "widened"]

Array = NDArray[Any]
Column = Callable[[Array], Array]

SAME, MIRRORED = 1, -1
COUNTS = {  # the same of all classes
    *("rows", "begun", "weight", "mean_weight", "late_weight", "left_weight", "right_weight"),
}
PAGES = ("models", "watches", "trial_watches")
FROM_ORIGIN = {"mean", "target_mean", "residual_mean"}
OF_Y = ("first", "low", "high", "usual")  # of a stream, where there are no targets
SAME_LAYER = {
    "rate",
    "scored",
    "lateness",
    "waiting",
    "term_weight",
    "stack_weight",
    "seen",
    "window",
}


class Source(NamedTuple):
    """What the target of a class is made of."""

    place: int | None  # of an earlier target, or None of a class that was never seen
    sign: int = SAME


def widened(model: Any, share: float) -> Any:
    """Return a copy of a model of classes that knows one class more, never seen so far.

    Parameters
    ----------
    model : HoeffdingTreeRegressor or Ensemble
        Of one target (two classes), or of one for each class. Nobody changes it meanwhile.
    share : float
        Of the second class among all rows, if there is one target.
    """
    known = len(model._features.known.targets)
    sources = [Source(place) for place in range(known)] or [Source(0, MIRRORED), Source(0)]
    return _with_targets(model, [*sources, Source(None)], share)


def reordered(model: Any, places: Sequence[int]) -> Any:
    """Return a copy of a model of three classes or more that has its classes in another order.

    Parameters
    ----------
    model : HoeffdingTreeRegressor or Ensemble
        No prediction of it may be pending.
    places : sequence of int
        For each class, which one of the model it is.
    """
    return _with_targets(model, [Source(place) for place in places], 0.0)


def _with_targets(model: Any, sources: list[Source], share: float) -> Any:
    """Return a copy of a model with other targets, each made of an earlier one or never seen."""
    known = len(model._features.known.targets)
    header, arrays = model.to_state()
    features = {**header["features"], TARGETS: list(range(len(sources)))}
    header = {**header, "features": features}
    if isinstance(model, HoeffdingTreeRegressor):
        if not known:
            header.pop(tree_state.UNDECIDED, None)
        arrays = _tree(model._kernel, arrays, sources, share)
    else:
        if not known:
            header["pending"] = [-1] * len(model._kernel.trees)
        arrays = _ensemble(model, arrays, sources, share)
    restored = restoring if isinstance(model, HoeffdingTreeRegressor) else ensemble_state
    made = restored.restored(type(model), State(header, arrays), model.format, is_own=True)
    made.schema = model.schema
    return made


# -- a tree ------------------------------------------------------------------------------------


def _tree(
    kernel: TreeKernel, arrays: dict[str, Array], sources: Sequence[Source], share: float
) -> dict[str, Array]:
    """Return the arrays of a tree with other targets."""
    found = {name: arrays[name].copy() for name in tree_state.ARRAYS if name not in PAGES}
    targets, is_one = len(sources), kernel.targets == 1
    if is_one:
        _forget_one_target(found)
    count = kernel.features
    found |= {
        "layer": _layers(arrays["layer"], kernel.targets, sources),
        "levels": _levels(arrays["levels"], kernel, sources),
        "models": _models(arrays["models"], kernel, sources),
        "watches": _watches(arrays["watches"], kernel, sources),
        "target_streams": _streams(arrays, is_one, sources, share),
        "target_leaves": _records(
            arrays["leaves" if is_one else "target_leaves"], TARGET_LEAF, is_one, sources, _leaf
        ),
        "target_nodes": _records(
            arrays["nodes" if is_one else "target_nodes"],
            TARGET_NODE,
            is_one,
            sources,
            _node_of(arrays["nodes"]["kind"] == LEAF),
        ),
        "target_costs": _records(
            arrays["facts" if is_one else "target_costs"][: count * kernel.targets],
            TARGET_COST,
            is_one,
            sources,
            lambda own: own,
        ),
    }
    found["trial_watches"] = np.zeros((0, found["watches"].shape[1]))
    if not is_one and len(arrays["trial_watches"]):
        found["trial_watches"] = _watches(arrays["trial_watches"], kernel, sources)
        found["target_trial"] = _records(
            arrays["target_trial"], TARGET_TRIAL, is_one, sources, lambda own: own
        )
    if kernel.columns.has_encoded:
        found |= _encodings(arrays, kernel, sources)
    notes = memory.new_pending(kernel.max_bytes, targets) if kernel.tracking else None
    return found | _notes(notes, None if is_one else arrays, kernel.targets)


def _forget_one_target(found: dict[str, Records]) -> None:
    """Clear what a tree of one target keeps in places that trees of several do not use."""
    nodes, leaves, facts = found["nodes"], found["leaves"], found["facts"]
    for table, record in ((nodes, TARGET_NODE), (leaves, TARGET_LEAF), (facts, TARGET_COST)):
        for name in record.names or ():
            if table is facts or name not in ("rows", "weight", "gain"):
                table[name] = 0.0
    nodes["gain"][nodes["kind"] == LEAF] = 0.0
    stream = dict(zip(STREAM, found["stream"].tolist(), strict=True))
    found["stream"] = np.array([0.0 if name in OF_Y else stream[name] for name in STREAM])
    for name in ("units", "unrest", "changes"):
        found[name] = np.zeros_like(found[name])
    found["trial"] = no_trial()


def _records(
    table: Array, record: Any, is_one: bool, sources: Sequence[Source], mirrored: Column
) -> Array:
    """Return the records of all targets, made of those of one target or of several."""
    old = 1 if is_one else max(each.place or 0 for each in sources) + 1
    rows = len(table) // old
    by_target = table.reshape(rows, old)
    names = record.names or ()
    made = np.zeros((rows, len(sources)), record)
    for name in names:
        made[name] = by_target[name][:, [source.place or 0 for source in sources]]
    for place, source in enumerate(sources):
        if source.place is None:
            for name in set(names) - COUNTS:
                made[name][:, place] = 0.0
        elif source.sign == MIRRORED:
            made[:, place] = mirrored(made[:, place].copy())
    return made.reshape(-1)


def _leaf(own: Records) -> Records:
    """Return the leaves of a class, given those of the other one."""
    own["origin"] = 1.0 - own["origin"]
    for name in FROM_ORIGIN:
        own[name] = -own[name]
    return own


def _node_of(is_leaf: Array) -> Column:
    def mirrored(own: Records) -> Records:
        own["mean"] = np.where(is_leaf, own["mean"], 1.0 - own["mean"])
        return own

    return mirrored


def _streams(
    arrays: dict[str, Array], is_one: bool, sources: Sequence[Source], share: float
) -> Array:
    """Return what is known of each class over all rows."""
    if not is_one:
        table = arrays["target_streams"]
    else:
        stream = dict(zip(STREAM, arrays["stream"].tolist(), strict=True))
        table = np.zeros(1, TARGET_STREAM)
        for name in TARGET_STREAM.names or ():
            table[name] = stream.get(name, 0.0)
        if stream["rows"] > 0:
            table["mean"] = share - stream["first"]
            table["m2"] = stream["weight"] * share * (1.0 - share)
    return _records(table, TARGET_STREAM, is_one, sources, _stream)


def _stream(own: Records) -> Records:
    own["first"] = 1.0 - own["first"]
    own["low"], own["high"] = 1.0 - own["high"], 1.0 - own["low"]
    own["mean"] = -own["mean"]
    return own


def _layers(layers: Array, old: int, sources: Sequence[Source]) -> Array:
    """Return the corrector of each class; of two classes, it starts over."""
    if not len(layers):
        return layers.copy()
    of_targets = layers.reshape(old, -1)
    unseen = fresh_layer().copy()
    for name, start, size in layer_parts():
        if name == "slope":
            unseen[start : start + size] = 1.0  # of a target that never varied
        elif name in SAME_LAYER and old > 1:
            unseen[start : start + size] = of_targets[0, start : start + size]
    if old == 1:
        return np.tile(unseen, len(sources))
    return np.concatenate([unseen if s.place is None else of_targets[s.place] for s in sources])


def _levels(levels: Array, kernel: TreeKernel, sources: Sequence[Source]) -> Array:
    """Return weights and means of categories; the means are 0 of a class that was never seen."""
    of_targets = levels.reshape(kernel.targets, -1, 2)
    made = of_targets[[source.place or 0 for source in sources]]
    for own, source in zip(made, sources, strict=True):
        if source.place is None:
            own[:, 1] = 0.0
        elif source.sign == MIRRORED:
            own[~_squares(kernel), 1] *= -1.0
    return made.reshape(-1, 2)


def _squares(kernel: TreeKernel) -> NDArray[np.bool_]:
    """Return which levels of a target are means of squares: two of each category of many."""
    places = kernel.columns.place_table
    found = np.zeros(encoding_table_rows(places), np.bool_)
    start = CODES * len(places)
    for count in places[places >= 0].tolist():
        found[start + 1 : start + ENCODING_HEAD] = True
        start += ENCODING_HEAD + count
    return found


def _encodings(
    arrays: dict[str, Array], kernel: TreeKernel, sources: Sequence[Source]
) -> dict[str, Array]:
    """Return by which numbers splits read categories of many: the same as before."""
    columns = kernel.columns
    weights = np.zeros((kernel.features, len(sources)))
    if columns.split_encoded:
        weights[:, : kernel.targets] = arrays["encoding_weights"]
        return {"split_encodings": arrays["split_encodings"].copy(), "encoding_weights": weights}
    many = np.flatnonzero(columns.place_table >= 0).tolist()
    weights[many, sources.index(Source(0))] = 1.0
    levels = [np.roll(kernel.encodings_of(feature, from_first=True), 1) for feature in many]
    return {"split_encodings": np.concatenate(levels), "encoding_weights": weights}


# -- pages -------------------------------------------------------------------------------------


def _models(pages: Array, kernel: TreeKernel, sources: Sequence[Source]) -> Array:
    """Return the linear models of all classes, in pages of the new layout."""
    if not kernel.linear:
        return pages.copy()
    is_category = _categories(kernel)
    centres, scales, _, _ = kernel.page_parts()
    coefficients, rest = [], []
    for source in sources:
        start, page = kernel.model_place(source.place or 0)
        own = pages[:, start : start + centres].copy()
        base = pages[:, page : page + kernel.page_size].copy()
        if source.place is None:
            own[:] = 0.0
            base[:, centres:scales][:, is_category] = 0.0
        elif source.sign == MIRRORED:
            own = -own
            _mirror(own, base, is_category, kernel)
        base[:, :centres] = own
        coefficients.append(own)
        rest.append(base)
    if is_category.any():  # where each class has a page of its own
        return np.ascontiguousarray(np.hstack(rest))
    return np.ascontiguousarray(np.hstack([rest[0], *coefficients[1:]]))


def _mirror(coefficients: Array, page: Array, is_category: Array, kernel: TreeKernel) -> None:
    """Let the levels of categories be those of the other class: their signs change."""
    centres, scales, start, terms = kernel.page_parts()
    page[:, centres:scales][:, is_category] *= -1.0
    sign = np.ones(terms)
    sign[1 : 1 + kernel.features][is_category] = -1.0
    rates = centres // terms
    coefficients *= np.repeat(sign, rates)
    if page.shape[1] - start == terms * terms:
        page[:, start:] *= np.outer(sign, sign).reshape(-1)


def _categories(kernel: TreeKernel) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = kernel.columns.is_category | (kernel.columns.place_table >= 0)
    return found


def _watches(pages: Array, kernel: TreeKernel, sources: Sequence[Source]) -> Array:
    """Return what leaves watch of all classes, in pages of the new layout."""
    grids, old, new = GRID_DOUBLES * kernel.features, kernel.targets, len(sources)
    starts = [kernel.slot_start(feature) for feature in range(kernel.features + 1)]
    counts = [(end - start) // (1 + 2 * old) for start, end in pairwise(starts)]
    made = np.empty((len(pages), grids + (1 + 3 * new) * sum(counts)))
    made[:, :grids] = pages[:, :grids]
    by_feature = pages[:, :grids].reshape(len(pages), kernel.features, GRID_DOUBLES)
    at, gap_at, feature = grids, grids + (1 + 2 * new) * sum(counts), 0
    for count, same in groupby(counts):  # neighbours of as many slots
        alike = len(list(same))
        slots = count * alike
        own = pages[:, starts[feature] : starts[feature + alike]]
        grid = by_feature[:, feature : feature + alike].reshape(-1, GRID_DOUBLES)
        end, gap_end = at + (1 + 2 * new) * slots, gap_at + new * slots
        wider = _wider_slots(
            own.reshape(len(pages) * alike, count * (1 + 2 * old)), count, grid, sources
        )
        made[:, at:end] = wider.reshape(len(pages), end - at)
        gaps = made[:, gap_at:gap_end].reshape(len(pages), slots, new)
        if old == 1:
            gaps[:] = 0.0
        else:
            begin, stop = kernel.gap_start(feature), kernel.gap_start(feature + alike)
            missing = pages[:, begin:stop].reshape(len(pages), slots, old)
            gaps[:, :, :old] = missing
            gaps[:, :, old:] = missing[:, :, :1]
        at, gap_at, feature = end, gap_end, feature + alike
    return made


def _wider_slots(own: Array, count: int, grid: Array, sources: Sequence[Source]) -> Array:
    """Return the sums of slots, a row for each feature of each leaf.

    Where no grid is laid yet, they are those of single rows and their x.
    """
    lines, size, wide = len(own), own.shape[1] // count, 1 + 2 * len(sources)
    made = _wider_sums(own.reshape(lines, count, size), sources).reshape(lines, count * wide)
    raw = np.flatnonzero(~(grid[:, 2] > 0.0))
    kept = grid[raw, 3].astype(np.int64)
    most = int(kept.max(initial=0))
    rows = own[raw, : most * (size + 1)].reshape(len(raw), most, size + 1)
    rows[np.arange(most) >= kept[:, None]] = 0.0
    made[raw, :-wide] = 0.0
    with_x = np.dstack([_wider_sums(rows[..., :size], sources), rows[..., size]])
    made[raw, : most * (wide + 1)] = with_x.reshape(len(raw), most * (wide + 1))
    return made


def _wider_sums(slots: Array, sources: Sequence[Source]) -> Array:
    """Return the weight and the sums of all classes in slots, given those of earlier targets."""
    made = np.zeros((*slots.shape[:-1], 1 + 2 * len(sources)))
    made[..., 0] = slots[..., 0]
    places = [source.place for source in sources]
    if places == [*range(len(sources) - 1), None]:
        made[..., 1:-2] = slots[..., 1:]
        return made
    for target, (place, sign) in enumerate(sources):
        if place is not None:
            made[..., 1 + 2 * target : 3 + 2 * target] = (
                sign * slots[..., 1 + 2 * place : 3 + 2 * place]
            )
    return made


# -- predictions that wait for labels ------------------------------------------------------------


def _notes(
    notes: PendingPredictions | None, arrays: dict[str, Array] | None, old: int
) -> dict[str, Array]:
    """Return pending predictions with those of one more class, or none of two classes."""
    if notes is not None and arrays is not None:
        sizes, keys, ages, contents = (arrays[name] for name in tree_state.PENDING_ARRAYS)
        width = (contents.shape[1] - 1) // old
        unseen = np.zeros((len(contents), notes.width - contents.shape[1]))
        unseen[:, ::width] = contents[:, :1]
        restore_latest(notes, sizes, keys, ages, np.hstack([contents, unseen]))
    return tree_state.pending_arrays(notes)


def restore_latest(
    notes: PendingPredictions, sizes: Array, keys: Array, ages: Array, contents: Array
) -> None:
    """Restore as many pending predictions as there is room for, the latest first."""
    kept = ages <= notes.most
    sizes = sizes.copy()
    sizes[0] = min(sizes[0], notes.most)
    sizes[4] = min(sizes[4], notes.most)
    if len(sizes) > 6:
        sizes[6] = np.count_nonzero(keys[kept] >> np.uint64(63))
    if len(sizes) > 7:
        sizes[7] = sizes[7] if sizes[7] <= notes.most else 0.0
        sizes = sizes if kept.any() else sizes[:8]
    own = np.ascontiguousarray(contents[kept])
    notes.restore(sizes, keys[kept], np.ascontiguousarray(ages[kept]), own)


# -- an ensemble -------------------------------------------------------------------------------


def _ensemble(
    model: Ensemble, arrays: dict[str, Array], sources: Sequence[Source], share: float
) -> dict[str, Array]:
    """Return the arrays of an ensemble with other targets."""
    kernel = model._kernel
    old, is_one = kernel.targets, kernel.targets == 1
    found = {name: arrays[name].copy() for name in ("trees", "stream", "detector")}
    if is_one:
        found["trees"]["square"] = found["trees"]["weight"] = 0.0
        found["stream"] = _ensemble_stream(arrays["stream"], share * (1.0 - share))
    found |= {
        "blend": _blends(kernel, arrays["blend"], sources),
        "layer": _layers(arrays["layer"], old, sources),
        "errors": _errors(arrays, is_one, sources),
        "targets": _records(
            _ensemble_records(arrays, is_one, share), TARGET_RECORD, is_one, sources, _stream
        ),
    }
    notes = model._new_pending(len(sources)) if kernel.tracking else None
    found |= _notes(notes, None if is_one else arrays, old)
    names = (
        *tree_state.ARRAYS,
        *(() if is_one else tree_state.TARGET_ARRAYS),
        *tree_state.ENCODINGS,
    )
    for place, tree in enumerate(kernel.trees):
        own = {name: arrays[f"{place} {name}"] for name in names if f"{place} {name}" in arrays}
        made = _tree(tree, own, sources, share)
        found |= {f"{place} {name}": array for name, array in made.items()}
    return found


def _blends(kernel: EnsembleKernel, blends: Array, sources: Sequence[Source]) -> Array:
    """Return the weights of trees for each class; those of a mirrored class are the same."""
    of_targets = blends.reshape(kernel.targets, -1)
    unseen = kernel.fresh_targets(1).stack_table.copy()
    unseen[1] = of_targets[0, 1]
    return np.concatenate([unseen if s.place is None else of_targets[s.place] for s in sources])


def _errors(arrays: dict[str, Array], is_one: bool, sources: Sequence[Source]) -> Array:
    """Return the squared error and the weight of each tree and class."""
    if is_one:
        old = np.column_stack([arrays["trees"]["square"], arrays["trees"]["weight"]])[:, None]
    else:
        old = arrays["errors"]
    made = np.stack([old[:, source.place or 0] for source in sources], axis=1)
    for place, source in enumerate(sources):
        if source.place is None:
            made[:, place, 0] = 0.0
    return np.ascontiguousarray(made)


def _ensemble_records(arrays: dict[str, Array], is_one: bool, share: float) -> Array:
    """Return what an ensemble knows of its targets."""
    if not is_one:
        return arrays["targets"]
    stream = dict(zip(ENSEMBLE_STREAM, arrays["stream"].tolist(), strict=True))
    table = np.zeros(1, TARGET_RECORD)
    for name in ("rows", "begun", "low", "high", "usual"):
        table[name] = stream[name]
    if stream["rows"] > 0:
        table["weight"], table["first"], table["mean"] = stream["weight"], 0.0, share
        table["m2"] = stream["weight"] * share * (1.0 - share)
    return table


def _ensemble_stream(stream: Array, variance: float) -> Array:
    """Return the numbers of a stream, in units of the variance of a class."""
    known = dict(zip(ENSEMBLE_STREAM, stream.tolist(), strict=True))
    for name, power in SUMS.items():
        known[name] = known[name] / variance**power if variance > 0.0 else 0.0
    known |= dict.fromkeys(("low", "high", "usual"), 0.0)
    return np.array([known[name] for name in ENSEMBLE_STREAM])

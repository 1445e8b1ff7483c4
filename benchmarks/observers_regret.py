"""How much merit the quantizer that finds its own radius loses against an exhaustive search.

Regret is 1 − merit / merit of E-BST on the same rows. `QuantizerObserver(0.01)`, which has a given
radius, is shown for comparison. As in the paper, a cell is a distribution, a target, noise
or none, and a number of rows, and its regret is the mean over several runs; the worst single run
is shown as well.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.streams import HOSTILE, Hostile
from benchmarks.tables import Answer, Bound, Cell, Table, percent
from sapwood import EBSTObserver, Observer, QuantizerObserver
from sapwood.paper.protocol import DISTRIBUTIONS, TARGETS, all_cells, sample

__all__ = ["run"]

FloatArray = NDArray[np.float64]

SLOTS = 128
FIXED_RADIUS = 0.01
MAX_FIXED_ELEMENTS = 200_000
PAPER_RUNS = {
    **dict.fromkeys((200, 400, 500, 750, 1_000), 20),
    **dict.fromkeys((2_500, 5_000, 7_000, 10_000), 10),
    **dict.fromkeys((15_000, 25_000, 50_000, 75_000, 100_000), 3),
    **dict.fromkeys((200_000, 500_000, 1_000_000), 1),
}
HOSTILE_RUNS = {200: 10, 1_000: 10, 10_000: 10, 100_000: 3, 1_000_000: 1}
QUICK_ROWS = 10_000
CELL_ALLOWED = 0.003
MEAN_ALLOWED = 0.0002
HOSTILE_ALLOWED = 0.01


class Record(NamedTuple):
    """One stream, watched by both quantizers and by E-BST."""

    group: str
    feature: str
    variant: str
    target: str
    n: int
    seed: int
    merit: float
    regret: float
    elements: int
    fixed_regret: float | None
    fixed_elements: int | None


def run(quick: bool = False) -> Answer:
    """Measure the regret on the paper's distributions and on hostile features.

    Parameters
    ----------
    quick : bool
        Stop at 10,000 rows instead of 1,000,000.
    """
    most = QUICK_ROWS if quick else max(PAPER_RUNS)
    paper = list(_paper(most))
    hostile = list(_hostile(most))
    tables = [_paper_table(paper), _size_table(paper), _hostile_table(hostile)]
    records = Table("regret", Record._fields, [*paper, *hostile])
    return Answer(tables, records, [*_paper_bounds(paper), *_hostile_bounds(hostile)])


def _paper(most: int) -> Iterator[Record]:
    for n, runs in PAPER_RUNS.items():
        if n > most:
            break
        for cell, seed in product(all_cells([n]), range(runs)):
            variant = "noisy" if cell.noisy else "clean"
            labels = ("paper", cell.distribution, variant, cell.target)
            yield _record(labels, seed, *sample(cell, seed))


def _hostile(most: int) -> Iterator[Record]:
    for n, runs in HOSTILE_RUNS.items():
        if n > most:
            break
        for feature, target, seed in product(HOSTILE, TARGETS, range(runs)):
            rng = np.random.default_rng(seed)
            z = feature.sample(rng, n)
            x = z if feature.distort is None else feature.distort(rng, z)
            for variant, origin in {"before": z, "after": x}.items():
                if variant == "after" and not _has_after(feature):
                    continue
                y = TARGETS[target](np.random.default_rng(seed), origin)
                yield _record((_group(feature), feature.name, variant, target), seed, x, y)


def _has_after(feature: Hostile) -> bool:
    """Return whether a target of the distorted feature is another one, and can be squared."""
    return feature.distort is not None and "1e308" not in feature.name


def _group(feature: Hostile) -> str:
    return "named" if feature.named else "informative"


def _record(labels: tuple[str, str, str, str], seed: int, x: FloatArray, y: FloatArray) -> Record:
    ascending = np.argsort(x)  # the order is nothing to E-BST, but sorted rows are half the work
    reference, _ = _watch(EBSTObserver(), x[ascending], y[ascending])
    merit, elements = _watch(QuantizerObserver(radius="auto", slots=SLOTS), x, y)
    fixed_regret = fixed_elements = None
    if _fixed_elements(x) <= MAX_FIXED_ELEMENTS:
        fixed_merit, fixed_elements = _watch(QuantizerObserver(FIXED_RADIUS), x, y)
        fixed_regret = 1 - fixed_merit / reference
    regret = 1 - merit / reference
    return Record(*labels, len(x), seed, merit, regret, elements, fixed_regret, fixed_elements)


def _fixed_elements(x: FloatArray) -> int:
    with np.errstate(over="ignore"):
        return len(np.unique(np.floor(x / FIXED_RADIUS)))


def _watch(observer: Observer, x: FloatArray, y: FloatArray) -> tuple[float, int]:
    observer.update_many(x, y)
    split = observer.best_split()
    return (0.0 if split is None else split.merit), len(observer)


SUMMARY = (
    "mean",
    "worst cell",
    "worst run",
    "elements",
    "QO 0.01 mean",
    "QO 0.01 worst run",
    "QO 0.01 elements",
)


def _summary(records: Sequence[Record]) -> tuple[str, str, str, int, str, str, int]:
    cells = _cell_means(records)
    fixed = [r.fixed_regret for r in records if r.fixed_regret is not None]
    return (
        percent(float(np.mean(cells))),
        percent(max(cells)),
        percent(max(r.regret for r in records)),
        max(r.elements for r in records),
        percent(float(np.mean(fixed)) if fixed else None),
        percent(max(fixed, default=None)),
        max(r.fixed_elements or 0 for r in records),
    )


def _cell_means(records: Sequence[Record]) -> list[float]:
    """Return the mean regret of the runs of each cell: all labels but the seed."""
    cells: dict[tuple[Cell, ...], list[float]] = {}
    for record in records:
        cells.setdefault(record[:5], []).append(record.regret)
    return [float(np.mean(regrets)) for regrets in cells.values()]


def _paper_table(records: Sequence[Record]) -> Table:
    rows = [(name, *_summary([r for r in records if r.feature == name])) for name in DISTRIBUTIONS]
    return Table(
        f'Regret of radius="auto", slots={SLOTS}: the paper\'s distributions, '
        "both targets, with and without noise, all sizes",
        ("distribution", *SUMMARY),
        [*rows, ("all", *_summary(records))],
    )


def _size_table(records: Sequence[Record]) -> Table:
    rows = [
        (n, target, *_summary([r for r in records if (r.n, r.target) == (n, target)]))
        for n, target in dict.fromkeys((r.n, r.target) for r in records)
    ]
    return Table("The same by rows and target", ("rows", "target", *SUMMARY), rows)


def _hostile_table(records: Sequence[Record]) -> Table:
    sizes = dict.fromkeys(r.n for r in records)
    rows: list[Sequence[Cell]] = []
    for feature, variant in dict.fromkeys((r.feature, r.variant) for r in records):
        own = [r for r in records if (r.feature, r.variant) == (feature, variant)]
        worst = [percent(max(r.regret for r in own if r.n == n)) for n in sizes]
        elements = max(r.elements for r in own)
        rows.append((own[0].group, feature, variant, *worst, elements, *_summary(own)[5:]))
    columns = ("group", "feature", "target from", *(f"n = {n:,}" for n in sizes), "elements")
    return Table(
        "Regret of the worst run on hostile features; the target is computed from the values "
        "before or after their distortion, and a limit is set only for the named ones, before",
        (*columns, *SUMMARY[5:]),
        rows,
    )


def _paper_bounds(records: Sequence[Record]) -> list[Bound]:
    cells = _cell_means(records)
    return [
        Bound("auto: regret, worst cell", max(cells), CELL_ALLOWED),
        Bound("auto: regret, mean of the cells", float(np.mean(cells)), MEAN_ALLOWED),
        Bound("auto: elements", max(r.elements for r in records), SLOTS),
    ]


def _hostile_bounds(records: Sequence[Record]) -> list[Bound]:
    worst: dict[str, float] = {}
    for record in records:
        if record.group == "named" and record.variant == "before":
            worst[record.feature] = max(worst.get(record.feature, 0.0), record.regret)
    bounds = [Bound(f"auto: regret, {name}", worst[name], HOSTILE_ALLOWED) for name in worst]
    return [*bounds, Bound("auto: elements, hostile", max(r.elements for r in records), SLOTS)]

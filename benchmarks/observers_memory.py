"""How many bytes an observer occupies for each element that it stores.

The elements arrive one by one, and every count from 100 on is looked at: the worst comes right
after a table has grown. A quantizer with `radius="auto"` is filled to its number of slots with
whole numbers, one slot each; and with normal values, which leave it partly empty.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.tables import Answer, Bound, Table
from sapwood import EBSTObserver, Observer, QuantizerObserver, TEBSTObserver

__all__ = ["run"]

FEWEST = 100
MOST = 100_000
QUICK_MOST = 10_000
SHOWN = (100, 1_000, 10_000, 100_000)
ALLOWED = 80

GROWING: dict[str, Callable[[], Observer]] = {
    "QO, fixed radius": lambda: QuantizerObserver(0.5),
    "E-BST": EBSTObserver,
    "TE-BST, 3 digits": lambda: TEBSTObserver(digits=3),
}


class Record(NamedTuple):
    """What an observer occupies with so many elements."""

    observer: str
    elements: int
    nbytes: int

    @property
    def each(self) -> float:
        """Bytes for an element."""
        return self.nbytes / self.elements


def run(quick: bool = False) -> Answer:
    """Measure the bytes for each element.

    Parameters
    ----------
    quick : bool
        Stop at 10,000 elements instead of 100,000.
    """
    most = QUICK_MOST if quick else MOST
    records: list[Record] = []
    for name, make in GROWING.items():
        records += _growing(name, make(), most)
    records += _auto_full(most)
    records += _auto_normal(most)
    names = dict.fromkeys(r.observer for r in records)
    groups = {name: [r for r in records if r.observer == name] for name in names}
    bounds = [
        Bound(f"bytes an element, {name}", max(r.each for r in own), ALLOWED)
        for name, own in groups.items()
    ]
    kept = [r for r in records if r.elements % 100 == 0 or r.observer.startswith("QO auto")]
    return Answer([_table(groups)], Table("memory", Record._fields, kept), bounds)


def _growing(name: str, observer: Observer, most: int) -> Iterator[Record]:
    """Give one observer a new value at a time, in random order."""
    for x in np.random.default_rng(0).permutation(most).tolist():
        observer.update(x, 0.0)
        if len(observer) >= FEWEST:
            yield Record(name, len(observer), observer.nbytes)


def _auto_full(most: int) -> Iterator[Record]:
    for slots in range(FEWEST, most + 1, 100):
        observer = QuantizerObserver(slots=slots)
        observer.update_many(np.arange(slots), np.zeros(slots))
        yield Record("QO auto, slots all used", len(observer), observer.nbytes)


def _auto_normal(most: int) -> Iterator[Record]:
    rng = np.random.default_rng(0)
    for slots in (128, 192, 256, 512, 1_000, 1_024, 2_000, 4_096, 10_000, 65_536, 100_000):
        if slots > most:
            break
        observer = QuantizerObserver(slots=slots)
        for _ in range(20):
            observer.update_many(rng.normal(size=slots), np.zeros(slots))
            if len(observer) >= FEWEST:
                yield Record("QO auto, normal values", len(observer), observer.nbytes)


def _table(groups: dict[str, list[Record]]) -> Table:
    rows = []
    for name, own in groups.items():
        worst = max(own, key=lambda r: r.each)
        at = {r.elements: r.each for r in own}
        met = "yes" if worst.each <= ALLOWED else "NO"
        rows.append((name, *map(at.get, SHOWN), worst.each, worst.elements, met))
    columns = ("observer", *(f"{n:,}" for n in SHOWN), "largest", "at", f"<= {ALLOWED}")
    return Table("Bytes for each element, at so many elements", columns, rows)

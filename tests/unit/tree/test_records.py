"""The records that Python declares are the structs that kernels read."""

import re
from pathlib import Path

import numpy as np
import pytest

import sapwood
from places import DATA
from sapwood.ensemble import layout as ensemble_layout
from sapwood.records import Field, Record, Times
from sapwood.storage import container
from sapwood.tree import growth, layout, memory

SOURCES = Path(sapwood.__file__).parent
TYPES = {"double": "<f8", "int32_t": "<i4", "int64_t": "<i8", "uint64_t": "<u8"}

RECORDS = {
    "NodeRecord": layout.NODES,
    "LeafRecord": layout.LEAVES,
    "ColumnFacts": layout.FACTS,
    "ColumnUnits": layout.UNITS,
    "UnitDetection": layout.UNIT_DETECTION,
    "UnitChange": layout.CHANGES,
    "Trial": layout.TRIAL,
    "TargetTrial": layout.TARGET_TRIALS,
    "TargetStream": layout.TARGET_STREAMS,
    "TargetLeaf": layout.TARGET_LEAVES,
    "TargetNode": layout.TARGET_NODES,
    "TargetCost": layout.TARGET_COSTS,
    "TreeRecord": ensemble_layout.TREES,
    "TargetRecord": ensemble_layout.TARGETS,
}
RULES = {
    "GrowthRules": growth.RULES,
    "MemoryRules": memory.RULES,
    "EnsembleRules": ensemble_layout.RULES,
}


def kernel_sources(*folders: str) -> str:
    """All that is declared for kernels of some folders."""
    paths = [path for folder in folders for path in sorted((SOURCES / folder).glob("*.p[xy][dx]"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def enumerated(sources: str) -> dict[str, int]:
    """The whole numbers that have a name."""
    found = re.findall(r"^    ([A-Z][A-Z_]*) = (-?\d+)\b(?! \*)", sources, re.MULTILINE)
    return {name: int(value) for name, value in found}


def struct(sources: str, name: str) -> list[tuple[str, str, int]]:
    """The fields of a struct: name, type, and how many there are in a row."""
    body = re.search(rf"^cdef struct {name}:\n((?:    .*\n|\n(?=    ))+)", sources, re.MULTILINE)
    assert body, name
    numbers, fields = enumerated(sources), []
    for line in body.group(1).splitlines():
        code = line.split("#")[0].strip()
        if code:
            declared = re.fullmatch(r"(\w+) (\w+)(?:\[(\w+)\])?", code)
            assert declared, code
            kind, field, size = declared.groups()
            count = 1 if size is None else numbers.get(size) or int(size)
            fields += [(field, TYPES[kind], count)] if kind in TYPES else struct(sources, kind)
    return fields


def declared(record: Record) -> list[tuple[str, str, int]]:
    """The same of a declaration: neighbours that are elements of one array are one field."""
    found: list[tuple[str, str, int]] = []
    for field in record.fields:
        name, kind = field.element_of or field.name, np.dtype(field.type).newbyteorder("<").str
        if field.element_of and found and found[-1][0] == name:
            found[-1] = name, kind, found[-1][2] + 1
        else:
            found.append((name, kind, 1))
    return found


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_the_structs_of_kernels(name):
    """The same names, types and numbers in the same order: so they are at the same places."""
    record = RECORDS[name]
    assert declared(record) == struct(kernel_sources("tree", "ensemble"), name)
    assert record.dtype == np.dtype(record.dtype.descr, align=True)  # C leaves no gaps


@pytest.mark.parametrize("name", RULES)
def test_rules_are_the_structs_of_kernels(name):
    record = RULES[name]
    kinds = [(field, record[field].newbyteorder("<").str, 1) for field in record.names or ()]
    assert kinds == struct(kernel_sources("tree", "ensemble"), name)
    assert record == np.dtype(record.descr, align=True)


def test_numbers_of_the_layout_are_those_of_kernels():
    numbers = enumerated(kernel_sources("tree"))
    assert numbers["EXPERTS"] == len(layout.ERRORS) == len(layout.SAID_ERRORS)
    assert numbers["CATEGORIES"] == layout.CODES
    assert numbers["COARSEST"] == layout.COARSEST_GRID
    assert numbers["NO_GRID"] == layout.FINER_THAN_GRIDS
    assert numbers["SAMPLES"] == layout.SAMPLE_ROWS
    assert numbers["MOST_CHANGES"] == layout.MOST_UNIT_CHANGES
    assert numbers["MOST_PATIENCE"] == layout.MOST_PATIENCE
    assert numbers["COLLECTED"] + numbers["WEIGHED"] == layout.UNIT_DETECTION_ROWS
    for name in ("LEAF", "NUMBER", "CATEGORY", "LISTED"):
        assert numbers[name] == getattr(layout, name)


def test_files_of_format_1_have_the_fields_that_there_were():
    file = DATA / "format_1" / "auto.sapwood"
    _, arrays = container.read(file, "HoeffdingTreeRegressor")
    for name, record in (("nodes", layout.NODES), ("leaves", layout.LEAVES)):
        assert arrays[name].dtype == record.of_format(1)
    upgraded = layout.LEAVES.upgraded(arrays["leaves"])
    assert upgraded.dtype == layout.LEAF_RECORD
    for name in arrays["leaves"].dtype.names:
        assert upgraded[name].tobytes() == arrays["leaves"][name].tobytes()
    for said, error in zip(layout.SAID_ERRORS, layout.ERRORS, strict=True):
        assert upgraded[said].tobytes() == arrays["leaves"][error].tobytes()


# What follows from a declaration

BOXES = Record(
    Field("count", 0, lambda most: most, np.int64, complaint="box {place} holds {value}"),
    Field("total", Times("count", -2.0), Times("count", 2.0), below="{name} {place} is too small"),
    Field("half", 0, 8, whole=True),
    Field("last", -4, 4, missing=True, since=2),
    Field("usual", 0, since=3, before="total"),
    complaint="the {name} of box {place} is wrong",
    finite="the {name} of box {place} is not finite",
)
LOOSE = Record(Field("last", -4, 4, missing=True), complaint="{name} {place}: {value}")


def boxes(**changed: float):
    table = np.array([(1, 2.0, 0.0, 1.0, 0.5), (3, 2.5, 8.0, -4.0, 0.5)], BOXES.dtype)
    for name, value in changed.items():
        table[name][1] = value
    return table


def test_a_table_within_its_bounds_is_taken():
    BOXES.check(boxes(), 3)
    BOXES.check(boxes(total=6.0), 3)
    BOXES.check(boxes(total=-6.0), 3)
    LOOSE.check(np.array([(np.nan,), (4.0,)], LOOSE.dtype))


REFUSED = {
    "a function of what is known": ({"count": 4}, "box 1 holds 4"),
    "below": ({"count": -1}, "box 1 holds -1"),
    "beyond another field": ({"total": 6.5}, "the total of box 1 is wrong"),
    "below another field": ({"total": -6.5}, "total 1 is too small"),
    "the other field first": ({"count": -1, "total": 1.0}, "box 1 holds -1"),
    "no whole number": ({"half": 0.5}, "the half of box 1 is wrong"),
    "infinite": ({"usual": np.inf}, "the usual of box 1 is not finite"),
    "no number": ({"half": np.nan}, "the half of box 1 is not finite"),
}


@pytest.mark.parametrize(("changed", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_values_out_of_bounds_are_refused_by_name_and_place(changed, complaint):
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        BOXES.check(boxes(**changed), 3)


def test_only_what_may_be_missing_may_be_nan():
    with pytest.raises(ValueError, match=r"^last 1: -5\.0$"):
        LOOSE.check(np.array([(np.nan,), (-5.0,)], LOOSE.dtype))
    strict = Record(Field("last", -4, 4), complaint="{name} {place}: {value}")
    with pytest.raises(ValueError, match=r"^last 0: nan$"):
        strict.check(np.array([(np.nan,)], strict.dtype))


@pytest.mark.parametrize("format", [1, 2, 3])
def test_tables_of_older_formats_are_upgraded(format):
    names = [("count", "total", "half"), ("last",), ("usual",)]
    older = boxes()[[name for some in names[:format] for name in some]]
    older = older.astype(BOXES.of_format(format))
    table = BOXES.upgraded(older)
    assert table.dtype == BOXES.dtype
    expected = boxes()
    if format < 3:
        expected["usual"] = expected["total"]
    if format < 2:
        expected["last"] = 0.0
    assert table.tolist() == expected.tolist()


def test_what_no_format_had_stays_as_it_is():
    table = np.zeros(3, [("count", np.int64), ("half", np.float64)])
    assert BOXES.upgraded(table) is table

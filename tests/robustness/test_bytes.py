"""Saved observers that are damaged or made to do harm: a ValueError, and nothing else."""

import copy
import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import OBSERVERS, assert_finite_answers, every_observer, watching
from sapwood import EBSTObserver, QuantizerObserver, TEBSTObserver
from sapwood.observers import packing

NASTY_NUMBERS = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -1.0,
    0.5,
    1e3,
    5e-324,
    2.0**52 + 1,
    1e154,
    1e300,
    -1e300,
    1.7e308,
    -1.7e308,
]
NASTY_JSON = [
    None,
    True,
    -1,
    0,
    2,
    3.5,
    1e308,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "auto",
    "1",
    "Infinity",
    [],
    [1.0],
    {},
    {"a": 1},
]


@pytest.fixture(params=OBSERVERS.values(), ids=OBSERVERS.keys())
def small(request):
    """An observer of three elements, one of which holds two rows."""
    return watching(request.param(), [-1.0, 2.0, 2.0, 5.0], [1.0, 4.0, 6.0, 9.0], [1, 2, 1, 0.5])


def parts_of(observer):
    """The header and the numbers of a saved observer, to be tampered with."""
    header, numbers = packing.unpack(observer.to_bytes())
    return copy.deepcopy(header), numbers.copy()


def number_places(observer):
    """Where in the numbers the keys, the table, and what follows start."""
    reach = 2 * observer.targets
    keys = reach + len(observer)
    return reach, keys, keys + len(observer) * (2 + 3 * observer.targets)


def assert_refused(kind, data):
    with pytest.raises(ValueError, match=r"\S"):
        kind.from_bytes(data)


def assert_refused_or_harmless(kind, data):
    """Whatever is let in has to answer, to go on watching, and to be saved again."""
    try:
        observer = kind.from_bytes(data)
    except ValueError:
        return
    assert_finite_answers(observer)
    assert observer.copy().to_bytes() == observer.to_bytes()
    observer.nbytes, repr(observer), observer.best_split()
    y = 4.0 if observer.targets == 1 else [4.0] * observer.targets
    for x in (-1.0, 1e10, 2.5, -1e300):
        try:
            observer.update(x, y)
        except OverflowError:
            break
    assert_finite_answers(observer)
    try:
        observer.merge(observer)
    except OverflowError:
        return
    assert_finite_answers(observer)


def test_a_saved_observer_can_be_read(small):
    assert type(small).from_bytes(packing.pack(*listed(parts_of(small)))).to_bytes() == (
        small.to_bytes()
    )


def listed(parts):
    header, numbers = parts
    return header, [numbers]


def test_cut_at_every_length(small):
    data = small.to_bytes()
    for length in range(len(data)):
        assert_refused(type(small), data[:length])
    assert_refused(type(small), data + b"\0")


def test_flipped_at_every_byte(small):
    data = small.to_bytes()
    for place in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[place] ^= flip
            assert_refused(type(small), bytes(damaged))


@pytest.mark.parametrize("kind", [QuantizerObserver, EBSTObserver, TEBSTObserver])
@given(st.binary(max_size=200))
@settings(max_examples=50)
def test_random_bytes(kind, data):
    assert_refused(kind, data)
    assert_refused(kind, packing.PREFIX.pack(packing.MAGIC, packing.VERSION, len(data)) + data)


@pytest.mark.parametrize("data", [None, "text", 3, [1, 2], b""])
def test_what_is_not_bytes(data):
    assert_refused(EBSTObserver, data)


def test_another_kind_of_observer(small):
    for kind in {QuantizerObserver, EBSTObserver, TEBSTObserver} - {type(small)}:
        assert_refused(kind, small.to_bytes())


def resealed(data):
    """Bytes with the checksum that their content should have."""
    body = data[: -packing.CHECKSUM.size]
    return body + packing.CHECKSUM.pack(zlib.crc32(body))


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_another_version_is_named(small, version):
    data = bytearray(small.to_bytes())
    struct.pack_into("<I", data, len(packing.MAGIC), version)
    with pytest.raises(ValueError, match=f"version {version} is not known"):
        type(small).from_bytes(resealed(bytes(data)))


def test_another_beginning(small):
    assert_refused(type(small), resealed(b"SAPWOOF\n" + small.to_bytes()[8:]))


@pytest.mark.parametrize("length", [0, 1, 50, 10**6, 2**32 - 1])
def test_a_wrong_length_of_the_header(small, length):
    data = bytearray(small.to_bytes())
    struct.pack_into("<I", data, len(packing.MAGIC) + 4, length)
    assert_refused(type(small), resealed(bytes(data)))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"3",
        b'"text"',
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"kind":' * 100_000,
        b"9" * 10_000,
        b'{"kind":"EBSTObserver"}',
        b'{"kind":"EBSTObserver","parameters":{}}',
        b'{"kind":"EBSTObserver","parameters":{},"elements":0}',
    ],
)
def test_a_header_that_is_not_one(text):
    body = packing.PREFIX.pack(packing.MAGIC, packing.VERSION, len(text)) + text
    assert_refused(EBSTObserver, resealed(body + b"\0" * packing.CHECKSUM.size))


@pytest.mark.parametrize("depth", [*range(850, 1001, 3), 10_000])
def test_a_header_nested_almost_too_deep(depth):
    nested = "[" * depth + "]" * depth
    parameters = f'{{"radius":{nested}}}'
    text = f'{{"kind":"QuantizerObserver","parameters":{parameters},"elements":0,"weight":0}}'
    text = text.encode()
    body = packing.PREFIX.pack(packing.MAGIC, packing.VERSION, len(text)) + text
    assert_refused(QuantizerObserver, resealed(body + b"\0" * packing.CHECKSUM.size))


def test_every_entry_of_the_header_replaced(small):
    header, numbers = parts_of(small)
    for name in header:
        for value in NASTY_JSON:
            assert_refused_or_harmless(
                type(small), packing.pack({**header, name: value}, [numbers])
            )
        without = {key: value for key, value in header.items() if key != name}
        assert_refused(type(small), packing.pack(without, [numbers]))


def test_every_parameter_replaced(small):
    header, numbers = parts_of(small)
    for name in header["parameters"]:
        for value in NASTY_JSON:
            parameters = {**header["parameters"], name: value}
            data = packing.pack({**header, "parameters": parameters}, [numbers])
            assert_refused_or_harmless(type(small), data)
    assert_refused(
        type(small),
        packing.pack({**header, "parameters": {**header["parameters"], "store": 1}}, [numbers]),
    )


def test_parameters_of_the_wrong_type(small):
    header, numbers = parts_of(small)
    for name in header["parameters"]:
        for value in (None, [], {}, "nonsense", float("nan"), -1, True, 10**400):
            parameters = {**header["parameters"], name: value}
            if name == "radius" and value is True:
                continue  # a radius of 1
            data = packing.pack({**header, "parameters": parameters}, [numbers])
            assert_refused(type(small), data)


@pytest.mark.parametrize("elements", [-1, 0, 1, 2, 4, 10**9, 2**63, 10**30, 3.0, "3", None, True])
def test_another_number_of_elements(small, elements):
    header, numbers = parts_of(small)
    assert_refused(type(small), packing.pack({**header, "elements": elements}, [numbers]))


def test_numbers_that_are_missing_or_too_many(small):
    header, numbers = parts_of(small)
    for count in range(len(numbers)):
        assert_refused(type(small), packing.pack(header, [numbers[:count]]))
    assert_refused(type(small), packing.pack(header, [numbers, np.zeros(1)]))
    assert_refused(type(small), packing.pack(header, [np.zeros(0)]))


def test_every_number_replaced(small):
    header, numbers = parts_of(small)
    for place in range(len(numbers)):
        for value in NASTY_NUMBERS:
            tampered = numbers.copy()
            tampered[place] = value
            assert_refused_or_harmless(type(small), packing.pack(header, [tampered]))


def test_pairs_of_numbers_replaced(small):
    header, numbers = parts_of(small)
    rng = np.random.default_rng(0)
    for _ in range(1000):
        tampered = numbers.copy()
        places = rng.integers(0, len(numbers), rng.integers(2, 5))
        tampered[places] = rng.choice([*NASTY_NUMBERS, *numbers], len(places))
        assert_refused_or_harmless(type(small), packing.pack(header, [tampered]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_statistics_that_are_not_finite(small, value):
    header, numbers = parts_of(small)
    first_key, first_statistic, end = number_places(small)
    for place in [*range(first_key), *range(first_statistic, end)]:
        tampered = numbers.copy()
        tampered[place] = value
        assert_refused(type(small), packing.pack(header, [tampered]))


@pytest.mark.parametrize("keys", ["descending", "equal", "nan"])
def test_keys_that_do_not_ascend(small, keys):
    header, numbers = parts_of(small)
    start, stop, _ = number_places(small)
    if keys == "descending":
        numbers[start:stop] = numbers[start:stop][::-1].copy()
    elif keys == "equal":
        numbers[start + 1] = numbers[start]
    else:
        numbers[start:stop] = np.nan
    assert_refused(type(small), packing.pack(header, [numbers]))


@pytest.mark.parametrize("weight", [-1.0, 0.0, -0.0, 2.5, 1e308])
def test_weights_that_no_rows_can_have(small, weight):
    header, numbers = parts_of(small)
    _, table, _ = number_places(small)
    for row in (table, table + 5):
        numbers[row] = weight
        assert_refused(type(small), packing.pack(header, [numbers]))


def test_a_negative_m2(small):
    header, numbers = parts_of(small)
    _, table, _ = number_places(small)
    numbers[table + 4] = -1e-300
    assert_refused(type(small), packing.pack(header, [numbers]))


@pytest.mark.parametrize("weight", [-3.0, 0.0, 1e300, float("nan"), float("inf"), None, [], {}])
def test_another_total_weight(small, weight):
    header, numbers = parts_of(small)
    assert_refused(type(small), packing.pack({**header, "weight": weight}, [numbers]))


@pytest.mark.parametrize("level", [-1075, 1025, 0.5, np.nan, np.inf, 1e300, -1e300, 2000])
def test_a_level_out_of_range(level):
    observer = watching(QuantizerObserver(), [1.0, 2.0], [0.0, 1.0])
    header, numbers = parts_of(observer)
    numbers[number_places(observer)[2]] = level
    assert_refused(QuantizerObserver, packing.pack(header, [numbers]))


@pytest.mark.parametrize(
    ("level", "borders"),
    [
        (0, [(0, 1), (0.5, 1.5)]),  # overlapping
        (0, [(0, 2), (1, 2)]),  # nested
        (0, [(0, 1), (1, 4)]),  # not of a power of two
        (0, [(0, 1), (1, 3)]),  # not at a multiple of its width
        (0, [(0, 1), (2, 4)]),  # coarser than the level
        (0, [(0, 1), (2, 1)]),  # ending before it starts
        (0, [(0, 1), (2, 2)]),  # empty
        (0, [(0, 1), (2, np.nan)]),
        (0, [(0, 1), (2, np.inf)]),
        (0, [(-np.inf, 1), (2, 3)]),
        (0, [(-1, 1), (2, 3)]),  # across zero
    ],
)
def test_slots_that_are_no_slots(level, borders):
    observer = watching(QuantizerObserver(), [0.0, 3.0], [0.0, 1.0])
    header, numbers = parts_of(observer)
    keys, _, end = number_places(observer)
    numbers[keys : keys + 2] = [low for low, _ in borders]
    numbers[end:] = [level, *(high for _, high in borders)]
    assert_refused(QuantizerObserver, packing.pack(header, [numbers]))


def test_slots_of_a_level_can_be_read():
    """The counterpart of the refusals: the same change, but to slots that are right."""
    observer = watching(QuantizerObserver(), [0.0, 3.0], [0.0, 1.0])
    header, numbers = parts_of(observer)
    keys, _, end = number_places(observer)
    numbers[keys : keys + 2] = [0, 2]
    numbers[end:] = [1, 1, 4]
    restored = QuantizerObserver.from_bytes(packing.pack(header, [numbers]))
    assert restored.radius == 2
    assert restored.candidates().thresholds.tolist() == [2]
    assert restored.best_split().merit == 0.25


def test_more_slots_than_there_may_be():
    header, numbers = parts_of(watching(QuantizerObserver(), np.arange(9.0), np.arange(9.0)))
    header["parameters"]["slots"] = 8
    assert_refused(QuantizerObserver, packing.pack(header, [numbers]))


@pytest.mark.parametrize("keys", [[0.5, 1.0], [np.nan, 1.0], [1.0, 0.0]])
def test_keys_of_a_fixed_radius_are_whole(keys):
    observer = watching(QuantizerObserver(1.0), [0.0, 3.0], [0.0, 1.0])
    header, numbers = parts_of(observer)
    numbers[2:4] = keys
    assert_refused(QuantizerObserver, packing.pack(header, [numbers]))


@every_observer
def test_the_header_is_plain_json(make):
    data = watching(make(), [1.0, 2.0], [0.0, 1.0]).to_bytes()
    length = packing.PREFIX.unpack_from(data)[2]
    header = json.loads(data[packing.PREFIX.size : packing.PREFIX.size + length])
    assert header["kind"] == type(make()).__name__
    assert header["elements"] == 2
    assert header["weight"] == 2

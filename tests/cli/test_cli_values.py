"""What is typed on the command line becomes what is meant, or is refused."""

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli_cases import rows_of, write_csv
from sapwood.cli.failure import UsageError
from sapwood.cli.models import make_model
from sapwood.cli.reading import Reading, open_named
from sapwood.cli.values import amount, byte_count, literal, settings, split_spec
from sapwood.streams import friedman


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1", (1, False)),
        ("5000", (5000, False)),
        ("100_000", (100_000, False)),
        ("100,000", (100_000, False)),
        ("24.0", (24, False)),
        ("30s", (30.0, True)),
        ("0.5s", (0.5, True)),
        ("5m", (300.0, True)),
        ("5 min", (300.0, True)),
        ("1.5h", (5400.0, True)),
        ("2D", (172_800.0, True)),
    ],
)
def test_amounts(text, meant) -> None:
    assert amount(text, "--every") == meant
    assert isinstance(amount(text, "--every")[0], float if meant[1] else int)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "0s",
        "1.5",
        "nan",
        "inf",
        "5 rows",
        "1y",
        "1e3",
        "s",
        "9" * 400,
        "9" * 400 + "h",
    ],
)
def test_what_is_no_amount_is_told(text) -> None:
    with pytest.raises(UsageError, match=r"rows \(5000\) or a duration"):
        amount(text, "--every")


@given(st.integers(1, 2**53 - 1))
def test_rows_are_read_exactly(rows) -> None:
    assert amount(str(rows), "--delay") == (rows, False)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("16MB", 16_000_000), ("500_000", 500_000), ("1.5 kb", 1500), ("2gb", 2 * 10**9), ("7b", 7)],
)
def test_bytes(text, meant) -> None:
    assert byte_count(text) == meant


@pytest.mark.parametrize("text", ["", "_", "MB", "-1", "0x10", "1TB", "0 foo", "9" * 400, "nan"])
def test_what_is_no_number_of_bytes_is_told(text) -> None:
    with pytest.raises(ValueError, match="bytes are expected, like 500000, 64MB or 2GB"):
        byte_count(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1e-5", 1e-5),
        ("200", 200),
        ("True", True),
        ("false", False),
        ("None", None),
        ("mean", "mean"),
        ("std/2", "std/2"),
        ("[1, 2]", [1, 2]),
        ("{[]: 1}", "{[]: 1}"),
        ("'\\d'", "\\d"),
        ("1 if", "1 if"),
        ("(" * 5000, "(" * 5000),
        ("-" * 5000 + "1", "-" * 5000 + "1"),
        ("9" * 5000, "9" * 5000),
        ("", ""),
    ],
)
def test_literals_are_values_or_text(text, meant) -> None:
    assert literal(text) == meant
    assert type(literal(text)) is type(meant)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda some: st.lists(some) | st.tuples(some, some) | st.dictionaries(st.text(), some),
)


@given(VALUES, st.sampled_from(["", " ", "\t "]))
def test_what_python_writes_is_read_as_it_was(value, before) -> None:
    found = literal(before + repr(value))
    assert found == value
    assert repr(found) == repr(value)


@given(st.text() | st.text("()[]{}'\"\\,:-+. \t\n#_0123456789abcdefxjnNTF"))
@example("\ud800")
@example("\0")
@example("[" * 300)
@example("{[]: 1}")
def test_any_text_is_read_as_a_value_or_as_itself(text) -> None:
    found = literal(text)
    if text.lower() in ("none", "true", "false"):
        assert found is {"none": None, "true": True, "false": False}[text.lower()]
    elif found != text:
        assert literal(repr(found)) == found
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            compile(text.lstrip(" \t"), "", "eval")  # it is an expression, not any text


def test_settings_need_a_name_and_a_value() -> None:
    assert settings([" leaf = mean ", "radius=a=b"], "--set") == {"leaf": "mean", "radius": "a=b"}
    for text in ("leaf", "=mean", " =1"):
        with pytest.raises(UsageError, match=r"--set .*: name=value is expected"):
            settings([text], "--set")


@pytest.mark.parametrize(
    ("text", "name", "own"),
    [
        ("tree", "tree", {}),
        ("tree:leaf=mean,delta=1e-5", "tree", {"leaf": "mean", "delta": "1e-5"}),
        ("tree:observer=qo:0.1", "tree", {"observer": "qo:0.1"}),
        ("river.tree:Model", "river.tree:Model", {}),
        ("river.tree:Model:seed=1", "river.tree:Model", {"seed": "1"}),
        ("C:/data/a.csv:target=y", "C:/data/a.csv", {"target": "y"}),
        ("a.csv:time_format=t:%H:%M", "a.csv", {"time_format": "t:%H:%M"}),
        ("friedman:5000", "friedman:5000", {}),
    ],
)
def test_names_with_settings_behind_them(text, name, own) -> None:
    assert split_spec(text) == (name, own)


def test_parameters_of_the_tree_are_what_they_look_like() -> None:
    stream = friedman(rows=100)
    given = {
        "grace_period": "100",
        "delta": "1e-5",
        "max_depth": "none",
        "leaf": "mean",
        "max_bytes": "64MB",
        "observer": "tebst:2",
    }
    tree = make_model("tree", given, stream)
    assert tree.parameters["grace_period"] == 100
    assert tree.parameters["delta"] == 1e-5
    assert tree.parameters["max_depth"] is None
    assert tree.parameters["leaf"] == "mean"
    assert tree.parameters["max_bytes"] == 64_000_000
    assert "TEBST" in repr(tree.parameters["observer"])


def test_a_tree_is_bounded_unless_it_is_let_grow() -> None:
    stream = friedman(rows=100)
    assert make_model("tree", {}, stream).parameters["max_bytes"] == 12_000_000
    assert make_model("tree", {"max_bytes": "none"}, stream).parameters["max_bytes"] is None


def test_options_of_a_stream_may_follow_its_name(tmp_path) -> None:
    lines = [line.replace("2026-", "26/", 1) for line in rows_of(50)]
    path = write_csv(tmp_path / "a.csv", lines)
    stream = open_named(
        f"{path}:target=y,drop=a+flag,categorical=b,time_format=sold:%y/%m-%d %H:%M,"
        "time_parts=hour+month",
        Reading(target=["a"], drop=["city"]),
    )
    assert stream.target == "y"
    assert dict(stream.features) == {
        "b": "category",
        "city": "category",
        "sold": "number",
        "sold.hour": "number",
        "sold.month": "number",
    }
    assert open_named(f"{path}:target=y", Reading(drop=["city", "sold"])).features.keys() == {
        "a",
        "b",
        "flag",
    }

"""What a start loads: no more than is used, and all that is promised."""

import inspect
import json
import subprocess
import sys
from importlib import import_module

import pytest

import sapwood
from sapwood import streams
from sapwood.cli import options
from sapwood.cli.app import COMMANDS
from sapwood.lags import lags

LATER = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def loaded_by(code, *arguments, stdin=b""):
    """The modules that are there after some code was run in a process of its own."""
    command = [sys.executable, "-c", f"{code}\n{LATER}", *map(str, arguments)]
    run = subprocess.run(command, input=stdin, capture_output=True, check=True)
    return set(json.loads(run.stderr.decode().splitlines()[-1]))


def command(*arguments, stdin=b"", before=""):
    code = f"{before}import os, sapwood.cli\nos._exit = lambda code: None\n"
    code += "try: sapwood.cli.main()\nexcept SystemExit: pass"
    return loaded_by(code, *arguments, stdin=stdin)


def test_an_import_loads_nothing_that_was_not_asked_for():
    modules = loaded_by("import sapwood")
    assert not {"numpy", "importlib.metadata", "sapwood.tree", "sapwood.observers"} & modules
    modules = loaded_by("from sapwood import QuantizerObserver")
    assert "sapwood.tree" not in modules


def test_help_loads_no_command():
    modules = command("--help")
    assert not {"numpy", "pyarrow", "matplotlib", "sapwood.tree"} & modules
    assert not {f"sapwood.cli.{name}" for name in COMMANDS} & modules


def test_predicting_loads_neither_pandas_nor_what_evaluates(tmp_path):
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many({"a": [1.0, 2.0], "city": ["Oslo", "Rome"]}, [10.0, 20.0])
    tree.save(tmp_path / "model.sapwood")
    modules = command("predict", tmp_path / "model.sapwood", stdin=b"a,city\n1,Oslo\n,\n")
    assert {"pyarrow", "sapwood.cli.predict"} <= modules
    others = {"pandas", "matplotlib", "scipy", "sapwood.evaluate", "sapwood.streams.generators"}
    assert not others & modules


@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_training_loads_no_pandas_but_lets_others_load_it(name, tmp_path):
    (tmp_path / "rows.csv").write_text("a,city,y\n" + "1,Oslo,2\n2,Rome,3\n" * 20)
    (tmp_path / "given.py").write_text(
        "import pandas as pd, pyarrow as pa, sapwood\n"
        "frame = pd.DataFrame({'a': [1.0], 'c': ['x']}).astype({'c': 'category'})\n"
        "assert pa.table(frame).num_rows == 1\n"
        "make = sapwood.HoeffdingTreeRegressor\n"
    )
    rows = (tmp_path / "rows.csv", "-t", "y", "-q")
    rows += ("--save", tmp_path / "m") if name == "train" else ()
    modules = command(name, *rows)
    assert "pyarrow" in modules
    assert "pandas" not in modules
    code = f"import os; os.chdir({str(tmp_path)!r})\n"
    assert "pandas" in command(name, *rows, "-m", "given:make", before=code)


@pytest.mark.parametrize("module", [sapwood, streams], ids=lambda module: module.__name__)
def test_all_that_is_promised_is_there(module):
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'forest'"):
        module.forest  # noqa: B018


def test_nothing_of_kafka_is_loaded_unless_a_topic_is_named(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": 1, "y": 2}\n' * 20, encoding="utf-8")
    modules = command("evaluate", file, "-t", "y", "-q")
    assert "sapwood.streams.jsonlines" in modules
    assert not {"confluent_kafka", "sapwood.streams.kafka", "sapwood.cli.kafka_output"} & modules


def test_packages_are_found_without_another_import():
    code = "import sapwood; print(sapwood.streams.demand(rows=5).length, sapwood.__version__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert run.stdout.decode().split() == ["5", sapwood.__version__]


def test_commands_stand_for_the_real_ones():
    for name, words in COMMANDS.items():
        real = getattr(import_module(f"sapwood.cli.{name}"), name)
        assert words == inspect.getdoc(real).split("\n\n")[0]


def test_generators_are_those_that_there_are():
    assert list(options.GENERATORS) == list(streams.GENERATORS)
    assert options.MOST_SERIES == lags.MOST_SERIES

"""Changed files of every kind of model, each tried where a crash or a hang is noticed.

`pytest tests/formats/test_kind_file_mutations.py -m long -s` prints what came of 10,000 files.
"""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

from kind_mutation_cases import KINDS, inspect, parts, verdict
from mutation_runs import tried_apart
from sapwood import ModelFileError
from sapwood.model import from_bytes
from sapwood.storage import container

PROGRAM = "kind_mutation_cases.py"


@pytest.mark.parametrize("name", KINDS)
def test_files_before_they_are_changed(name):
    assert verdict(container.pack(*parts(name))) == "accepted"


@pytest.mark.parametrize(
    ("first", "last"), [(0, 200), pytest.param(200, 400, marks=pytest.mark.long)]
)
def test_changed_files(first, last):
    found, troubles = tried_apart(PROGRAM, 0, first, last)
    assert not troubles
    assert min(found["rejected"], found["accepted"]) > 20


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_many_changed_files(seed):
    found, troubles = tried_apart(PROGRAM, seed, 0, 5_000)
    assert not troubles
    assert min(found["rejected"], found["accepted"]) > 500


# What raised something else than ModelFileError, or printed a traceback


@pytest.mark.parametrize("value", [None, "lags", [], 3, {"parameters": {}}, {"past": 1}])
@pytest.mark.parametrize("entry", ["lags", "past", "parameters"])
def test_entries_of_lags_that_are_none(entry, value):
    kind, header, arrays = parts("lags of series")
    lags = header["model"]["lags"]
    own = {"lags": value} if entry == "lags" else {"lags": {**lags, entry: value}}
    data = container.pack(kind, {**header, "model": own}, arrays)
    with pytest.raises(ModelFileError, match="is damaged"):
        from_bytes(data)


@pytest.mark.parametrize("outer", ["lags", "intervals"])
@pytest.mark.parametrize("inner", ["monitor", "detector"])
def test_what_does_not_learn_is_no_model_inside(outer, inner):
    kind, header, arrays = parts(outer)
    data = np.frombuffer(container.pack(*parts(inner)), np.uint8)
    with pytest.raises(ModelFileError, match="does not learn"):
        from_bytes(container.pack(kind, header, {**arrays, "model": data}))


def test_files_in_files_in_files():
    kind, header, arrays = parts("lags")
    data = container.pack(*parts("tree"))
    for _ in range(400):
        data = container.pack(kind, header, {**arrays, "model": np.frombuffer(data, np.uint8)})
    with pytest.raises(ModelFileError, match="is damaged"):
        from_bytes(data)


@pytest.mark.parametrize("name", ["forest", "adaptive", "lags of a forest", "forest of targets"])
@pytest.mark.parametrize("as_json", [False, True])
def test_every_model_is_shown(tmp_path, name, as_json):
    """The JSON of a forest was a traceback, as it has no depth."""
    path = tmp_path / "my.sapwood"
    path.write_bytes(container.pack(*parts(name)))
    shown = io.StringIO()
    with redirect_stdout(shown):
        inspect(path, depth=3, svg=None, as_json=as_json)
    assert "380" in shown.getvalue()  # rows

"""Files of all kinds of models that a release has written are read for ever."""

import json

import numpy as np
import pytest

import sapwood
from places import DATA
from release_files import models, predictions
from sapwood.model import KINDS
from sapwood.storage import container

FOLDER = DATA / "release_0.2.0"
NAMES = sorted(path.stem for path in FOLDER.glob("*.sapwood"))


def test_there_is_a_file_of_each_kind():
    kinds = {container.unpack_any((FOLDER / f"{n}.sapwood").read_bytes(), n)[0] for n in NAMES}
    assert kinds == set(KINDS)
    assert {*models()} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_read(name):
    model = sapwood.load(FOLDER / f"{name}.sapwood")
    known = json.loads((FOLDER / "predictions.json").read_text(encoding="utf-8"))
    if name in known:
        assert np.allclose(predictions(model), known[name], rtol=1e-9, atol=0.0)
    assert sapwood.model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_file_names_the_release():
    data = (FOLDER / "tree.sapwood").read_bytes()
    assert b'"written_by":"0.2.0"' in data
    written = sapwood.HoeffdingTreeRegressor().to_bytes()
    assert f'"written_by":"{sapwood.__version__}"'.encode() in written


def test_the_release_is_ignored_when_a_file_is_read(monkeypatch):
    tree = sapwood.HoeffdingTreeRegressor()
    monkeypatch.setattr(container, "release", lambda: "99.1")
    data = tree.to_bytes()
    assert b'"written_by":"99.1"' in data
    monkeypatch.undo()
    assert sapwood.model.from_bytes(data).to_bytes() == tree.to_bytes()

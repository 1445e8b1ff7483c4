"""Files of older formats become the same models as before."""

import numpy as np
import pytest

import sapwood
from places import DATA
from sapwood.storage import container
from tree_file_cases import stream

FOLDER = DATA / "format_1"
NAMES = ("auto", "raw", "mean", "radius", "std_2", "ebst", "tebst")


@pytest.mark.parametrize("name", NAMES)
def test_trees_of_format_1_predict_as_they_did_and_go_on(name):
    """To the last bit at first; then by a last layer that there was not."""
    tree = sapwood.load(FOLDER / f"{name}.sapwood")
    columns, _ = stream(60, seed=9)
    more, y = stream(200, seed=5)
    with np.load(FOLDER / "predictions.npz") as known:
        assert tree.predict_many(columns).tobytes() == known[f"{name}.now"].tobytes()
        later = tree.predict_learn_many(more, y)
        assert np.abs(later - known[f"{name}.later"]).max() < 0.02 * np.ptp(y)
    assert tree.column_formats == ({"day": "%d.%m.%Y"} if name == "auto" else {})


@pytest.mark.parametrize("name", NAMES)
def test_they_are_saved_in_the_newest_format(name):
    tree = sapwood.load(FOLDER / f"{name}.sapwood")
    data = tree.to_bytes()
    header, _ = container.unpack(data, "HoeffdingTreeRegressor")
    assert header["format"] == sapwood.HoeffdingTreeRegressor.format
    assert sapwood.HoeffdingTreeRegressor.from_bytes(data).to_bytes() == data


def test_a_newer_format_is_refused_by_name():
    header, arrays = container.unpack(
        sapwood.HoeffdingTreeRegressor().to_bytes(), "HoeffdingTreeRegressor"
    )
    data = container.pack("HoeffdingTreeRegressor", {**header, "format": 99}, arrays)
    with pytest.raises(sapwood.ModelFileError, match="of format 99 and this release reads up to"):
        sapwood.HoeffdingTreeRegressor.from_bytes(data)

"""What the tests of model files share: a model to save, and checks of messages about its file."""

import re

import numpy as np
import pytest

from sapwood.storage import container
from sapwood.storage.container import ModelFileError

KIND = "stump"
HEADER = {"depth": 1, "names": ["a", "ü"], "settings": {"delta": 1e-7, "track": None, "on": True}}
NODES = np.array([(1, -1, 0.5, True), (2, 7, np.nan, False)], "<i4,<i8,<f8,?")
ARRAYS = {"nodes": NODES, "none": np.zeros((0, 3)), "means": np.array([0.5, -2.0, np.inf])}


def written(folder):
    """A file that holds a model already."""
    file = folder / "my.model"
    container.write(file, KIND, HEADER, ARRAYS)
    assert file.read_bytes() == container.pack(KIND, HEADER, ARRAYS)
    return file


def assert_same(found, expected):
    """Assert that arrays are equal to the last bit, and their own."""
    assert list(found) == list(expected)
    for name, array in found.items():
        given = expected[name]
        assert array.dtype == given.dtype.newbyteorder("=")
        assert array.shape == given.shape
        assert array.tobytes() == given.astype(array.dtype).tobytes()
        assert array.dtype.isnative
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert array.flags.owndata


def assert_refused(data, words):
    with pytest.raises(ModelFileError, match=re.escape(words)) as caught:
        container.unpack(data, KIND, source="my.model")
    assert str(caught.value).startswith("my.model ")

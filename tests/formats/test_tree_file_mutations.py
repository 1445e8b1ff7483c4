"""Changed model files, thousands of them, each tried where a crash or a hang is noticed.

`pytest tests/test_tree_file_mutations.py -m long -s` prints what came of 10,000 files.
"""

import numpy as np
import pytest

from mutation_cases import TREES, state, verdict
from mutation_runs import tried_apart
from tree_file_cases import assert_refused, packed

PROGRAM = "mutation_cases.py"


def test_files_before_they_are_changed():
    for name in TREES:
        assert verdict(packed(*state(name))) == "accepted"


@pytest.mark.parametrize(
    ("first", "last"), [(0, 200), pytest.param(200, 400, marks=pytest.mark.long)]
)
def test_changed_files(first, last):
    found, troubles = tried_apart(PROGRAM, 0, first, last)
    assert not troubles
    assert min(found["rejected"], found["accepted"]) > 25


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_many_changed_files(seed):
    found, troubles = tried_apart(PROGRAM, seed, 0, 5_000)
    assert not troubles
    assert min(found["rejected"], found["accepted"]) > 500


# What gave models that became infinite, or could be saved but not loaded


def with_covariance(change):
    """A young tree of one number, with another covariance of its constant and coefficient."""
    header, arrays = state("one number, young")
    models = arrays["models"].copy()
    matrix = models[0, -16:].reshape(4, 4)
    change(matrix)
    return packed(header, arrays, models=models)


def set_pair(matrix, value):
    matrix[0, 1] = matrix[1, 0] = value


def set_own(matrix, term, value):
    matrix[term, term] = value
    matrix[term, :term] = matrix[:term, term] = 0.0


@pytest.mark.parametrize("value", [1e-308, 1e-100, 1e3 * 1.01, 1e29, 1e150])
def test_variances_that_no_rows_make(value):
    data = with_covariance(lambda matrix: set_own(matrix, 1, value))
    assert_refused(data, "a variance of leaf 0 is wrong")


@pytest.mark.parametrize("value", [1e29, -1e29, 100.0, -100.0])
def test_covariances_beyond_their_variances(value):
    data = with_covariance(lambda matrix: set_pair(matrix, value))
    assert_refused(data, "the covariances of leaf 0 contradict each other")


def test_a_covariance_that_is_possible_is_let_in():
    data = with_covariance(lambda matrix: set_own(matrix, 1, 0.5))
    assert verdict(data) == "accepted"


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e103])
def test_means_of_nodes(value):
    header, arrays = state("default")
    for place in (0, -1):
        nodes = arrays["nodes"].copy()
        nodes["mean"][place] = value
        assert_refused(packed(header, arrays, nodes=nodes), "the mean of")

"""Run the examples of compiled modules, which pytest does not collect by itself."""

import doctest

import pytest

from sapwood import moments


@pytest.mark.parametrize("module", [moments])
def test_the_examples_of_a_compiled_module(module):
    failed, attempted = doctest.testmod(module)
    assert attempted > 0
    assert failed == 0

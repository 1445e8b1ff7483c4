"""Random programs over all models and stages equal their rows one by one, with ids."""

import pytest

from random_programs import CASES, differences

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("part", range(2))
def test_random_programs_equal_their_rows_one_by_one(part):
    half = len(CASES) // 2
    assert differences(part * half, (part + 1) * half) == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_two_thousand_random_programs_equal_their_rows_one_by_one(part):
    assert differences(250 * part, 250 * (part + 1)) == []

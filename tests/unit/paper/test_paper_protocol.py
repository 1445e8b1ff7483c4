"""The data of the study: the same everywhere, and drawn as the paper says."""

import numpy as np
import pytest

from sapwood.paper.protocol import DISTRIBUTIONS, FULL, Cell, all_cells, sample

# The first two x and y of some cells, to the last bit.
PINNED = {
    (Cell(50, "N(0, 1)", "lin", noisy=False), 0): [
        "0x1.ae9a8ef642987p-1",
        "0x1.0ac0a388fd18fp+0",
        "-0x1.8ef8ea23081bbp+1",
        "-0x1.bfb16a045c97cp+1",
    ],
    (Cell(200, "U[-0.1, 0.1]", "cub", noisy=True), 3): [
        "0x1.dc3150d9c0600p-6",
        "0x1.93f81375582d8p-4",
        "0x1.6ce5e92902a76p-15",
        "0x1.bd8d28e504b56p-10",
    ],
    (Cell(1000, "N(-7, 7) | N(7, 0.1)", "lin", noisy=True), 9): [
        "0x1.8fb582d44f3a0p+2",
        "-0x1.59a271a3ad876p+3",
        "-0x1.e856b1df03daap+1",
        "0x1.8b27ccdd738d0p+1",
    ],
}
MEAN_AND_SD = {
    "N(0, 1)": (0.0, 1.0),
    "N(0, 0.1)": (0.0, 0.1),
    "N(0, 7)": (0.0, 7.0),
    "U[-1, 1]": (0.0, 1 / np.sqrt(3)),
    "U[-0.1, 0.1]": (0.0, 0.1 / np.sqrt(3)),
    "U[-7, 7]": (0.0, 7 / np.sqrt(3)),
    "N(-1, 1) | N(1, 1)": (0.0, np.sqrt(2)),
    "N(-0.1, 0.1) | N(0.1, 0.1)": (0.0, 0.1 * np.sqrt(2)),
    "N(-7, 7) | N(7, 0.1)": (0.0, np.sqrt(49 + (49 + 0.01) / 2)),
}


def test_there_are_684_different_cells() -> None:
    cells = all_cells(FULL.sizes)
    assert len(set(cells)) == len(cells) == 19 * 9 * 2 * 2
    assert (min(FULL.sizes), max(FULL.sizes), FULL.runs) == (50, 1_000_000, 10)


@pytest.mark.parametrize(("cell", "run"), PINNED)
def test_data_are_the_same_everywhere(cell: Cell, run: int) -> None:
    x, y = sample(cell, run)
    assert [float(value).hex() for value in (*x[:2], *y[:2])] == PINNED[cell, run]


def test_runs_and_cells_have_data_of_their_own() -> None:
    cells = all_cells([50])
    firsts = {sample(cell, run).x[0] for cell in cells for run in range(3)}
    assert len(firsts) == 3 * len(cells)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_the_papers(name: str) -> None:
    x = sample(Cell(200_000, name, "lin", noisy=False), 0).x
    mean, sd = MEAN_AND_SD[name]
    assert x.mean() == pytest.approx(mean, abs=0.01 * sd)
    assert x.std() == pytest.approx(sd, rel=0.01)
    if name.startswith("U"):
        assert np.abs(x).max() <= sd * np.sqrt(3)


def test_bimodal_rows_are_half_and_half_and_mixed() -> None:
    x = sample(Cell(10_000, "N(-7, 7) | N(7, 0.1)", "lin", noisy=False), 0).x
    narrow = np.abs(x - 7) < 0.5
    assert 0.5 <= narrow.mean() < 0.53
    assert narrow[:1_000].mean() == pytest.approx(narrow[-1_000:].mean(), abs=0.1)


@pytest.mark.parametrize("target", ["lin", "cub"])
def test_targets_follow_x_exactly(target: str) -> None:
    x, y = sample(Cell(500, "U[-7, 7]", target, noisy=False), 1)
    basis = np.column_stack([x, np.ones_like(x)] if target == "lin" else [x**3])
    coefficients = np.linalg.lstsq(basis, y, rcond=None)[0]
    np.testing.assert_allclose(basis @ coefficients, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "sd"), [("N(0, 7)", 0.1), ("N(0, 0.1)", 0.01)])
def test_noise_is_on_a_tenth_of_the_inputs(name: str, sd: float) -> None:
    x, y = sample(Cell(20_000, name, "lin", noisy=True), 0)
    quiet_x = (y - np.polyfit(x, y, 1)[1]) / np.polyfit(x, y, 1)[0]
    line = np.polyfit(x[np.abs(x - quiet_x) < sd / 10], y[np.abs(x - quiet_x) < sd / 10], 1)
    noise = x - (y - line[1]) / line[0]
    noisy_rows = np.abs(noise) > 1e-2 * sd
    assert noisy_rows.mean() == pytest.approx(0.1, abs=0.005)
    assert noise[noisy_rows].std() == pytest.approx(sd, rel=0.1)

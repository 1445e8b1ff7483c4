"""Stages around a model, by --stage."""

import json

import numpy as np
import pytest

import sapwood
from cli_cases import invoke

ROWS = 1_200


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of locations, two categories and a number."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    east, north, x = rng.uniform(-3, 3, (3, ROWS)).round(3)
    shop, item = rng.integers(0, 4, (2, ROWS))
    y = 3 * x + np.sin(2 * east + north) + rng.normal(size=(4, 4))[shop, item]
    lines = [
        f"{a},{b},{c},s{d},i{e},{f:.4f}"
        for a, b, c, d, e, f in zip(east, north, x, shop, item, y, strict=True)
    ]
    (tmp_path / "my.csv").write_text("\n".join(["east,north,x,shop,item,y", *lines]) + "\n")
    return "my.csv"


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        ("screened:features=2", "ScreenedRegressor"),
        ("recurring:pool=2,max_bytes=16MB", "RecurringRegressor"),
        ("sparse:features=3,always=x+east,absent=missing", "SparseRegressor"),
        ("views:crosses=shop:item+east:north:0.5", "MultiViewRegressor"),
    ],
)
def test_a_stage_learns_is_saved_and_predicts(file, stage, kind) -> None:
    ended = invoke("evaluate", file, "-t", "y", "--stage", stage, "--json", "--save", "m")
    assert ended.code == 0, ended.stderr
    assert ended.json()["total"]["r2"] > 0.6
    model = sapwood.load("m")
    assert type(model).__name__ == kind
    alone = invoke("predict", "m", file)
    assert alone.code == 0, alone.stderr
    assert len(alone.stdout.splitlines()) == ROWS + 1
    ended = invoke("evaluate", file, "-t", "y", "-m", "m", "--stage", stage)
    assert ended.code == 2
    assert "its parameters cannot be set any more" in ended.stderr


def test_parameters_of_stages_are_read(file) -> None:
    assert (
        invoke("train", file, "-t", "y", "--stage", "screened:features=2", "--save", "m").code == 0
    )
    assert len(sapwood.load("m").names) <= 4  # numbers, and both categories
    stage = "views:crosses=shop:item+east:north:0.5,without=x"
    assert invoke("train", file, "-t", "y", "--stage", stage, "--save", "m").code == 0
    views = sapwood.load("m")
    assert views.crosses == (("shop", "item"), ("east", "north", 0.5))
    assert views.without == ("x",)


def test_one_copy_has_no_lags(file) -> None:
    command = ("train", file, "-t", "y", "--lags", "1,24", "--stage", "views:without=lags")
    ended = invoke(*command, "--save", "m")
    assert ended.code == 0, ended.stderr
    model = sapwood.load("m")
    assert model.model.without == tuple(model.lags.features)
    assert len(model.model.without) == 2


def test_intervals_go_around_a_stage(file) -> None:
    command = ("evaluate", file, "-t", "y", "--stage", "screened", "--interval", "0.9", "--json")
    ended = invoke(*command)
    assert ended.code == 0, ended.stderr
    assert abs(json.loads(ended.stdout)["intervals"]["0.9"]["total"]["coverage"] - 0.9) < 0.05


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--stage", "screend"], "--stage screend: did you mean 'screened'?"),
        (["--stage", "screened:feature=3"], "--stage screened has no parameter feature"),
        (["--stage", "screened:features=many"], "--stage screened:features=many: features"),
        (["--stage", "views"], "name columns in without, or pairs of columns in crosses"),
        (["--stage", "views:crosses=x"], "a pair of columns is expected"),
        (["--stage", "views:crosses=x:east:0"], "a pair of columns is expected"),
        (["--stage", "views:crosses=shop:items"], "no column 'items': did you mean 'item'?"),
        (["--stage", "views:without=x+y"], "no column 'y': there are 'east', 'north', 'x', 'shop'"),
        (["--stage", "views:without=lags"], "there are no lag features: add --lags"),
        (["--stage", "sparse:always=z"], "no column 'z'"),
        (["--stage", "recurring:max_bytes=much"], "bytes are expected"),
        (["--stage", "screened", "--loss", "huber"], "--loss and --stage both change"),
        (["--stage", "screened", "-m", "mean"], "--stage screened: model = "),
        (["--stage", "screened", "--task", "classes"], "--stage"),
    ],
)
def test_what_cannot_be_is_rejected(file, given, message) -> None:
    ended = invoke("evaluate", file, "-t", "y", *given)
    assert ended.code == 2
    assert message in " ".join(ended.stderr.split())


def test_workers_have_no_stage(file) -> None:
    ended = invoke("train", file, "-t", "y", "--stage", "screened", "--workers", "2", "--save", "m")
    assert ended.code == 2
    assert "--stage needs rows one after the other" in ended.stderr

"""Workers that learn several targets."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tree_cases
from sapwood import ForestRegressor, HoeffdingTreeRegressor
from sapwood.scale import rounds, train
from sapwood.scale.sources import survey
from sapwood.streams import BadRowError, StreamError

ROWS = 4_000


@pytest.fixture(scope="module")
def columns():
    """The features and two targets of all rows, of which the second is missing in some."""
    x, y = tree_cases.friedman(ROWS, 1, features=5)
    found = {f"x{place}": np.round(column, 3) for place, column in enumerate(x.T)}
    down = np.where(np.arange(ROWS) % 5 == 0, np.nan, 30.0 - 4.0 * np.round(y, 2))
    return found | {"up": np.round(y, 2), "down": down}


@pytest.fixture(scope="module")
def folder(columns, tmp_path_factory):
    """The same rows as Parquet and as CSV."""
    path = tmp_path_factory.mktemp("rows")
    table = pa.table(columns)
    down = pa.array(columns["down"], from_pandas=True)
    table = table.set_column(table.schema.get_field_index("down"), "down", down)
    pa.parquet.write_table(table, path / "all.parquet", row_group_size=1_000)
    pa.csv.write_csv(table, path / "all.csv")
    return path


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(rounds, "FIRST_AT_ONCE", 1_000)
    monkeypatch.setattr(rounds, "LAST_OF_FORESTS", 500)


def trained(model, name, engine="threads", **options):
    return train(
        model,
        str(name),
        workers=2,
        engine=engine,
        read_options={"targets": ["up", "down"]},
        first=1_000,
        **options,
    )


@pytest.mark.parametrize(
    "made",
    [
        lambda: HoeffdingTreeRegressor(grace_period=100),
        lambda: ForestRegressor(members=4, grace_period=100, max_bytes=None),
    ],
    ids=["tree", "forest"],
)
def test_workers_learn_several_targets(made, folder, columns):
    found = trained(made(), folder / "all.parquet")
    assert found.model.targets == ["up", "down"]
    assert found.model.features == [f"x{place}" for place in range(5)]
    assert (found.rows_read, found.rows_learned, found.rows_without_target) == (ROWS, ROWS, 0)
    assert found.scores[:, 0].tolist() == [ROWS, ROWS - ROWS // 5]
    assert 0.7 < found.r2 < 1.0
    assert 0.0 < found.mae < found.rmse < 0.6  # in units of the deviation of each target
    predicted = found.model.predict_many({name: columns[name] for name in found.model.features})
    for name, own in predicted.items():
        known = ~np.isnan(columns[name])
        error = np.mean(np.square(own - columns[name])[known]) / np.var(columns[name][known])
        assert error < 0.25
    texts = trained(made(), folder / "all.csv")
    assert texts.rows_learned == ROWS
    assert 0.7 < texts.r2 < 1.0


def test_threads_and_processes_make_the_same_tree(folder):
    made = [
        trained(HoeffdingTreeRegressor(), folder / "all.csv", each)
        for each in ("threads", "processes")
    ]
    assert made[0].model.to_bytes() == made[1].model.to_bytes()


def test_the_schema_has_all_targets(folder):
    found = survey(str(folder / "all.csv"), {"targets": ["up", "down"]})
    assert found.schema.targets == ("up", "down")
    assert list(found.features) == [f"x{place}" for place in range(5)]
    with pytest.raises(StreamError, match="the target 'up' is named twice"):
        survey(str(folder / "all.csv"), {"targets": ["up", "up"]})


def test_rows_without_any_target_are_counted_and_bad_ones_stop(folder, tmp_path):
    lines = (folder / "all.csv").read_text().splitlines()
    for place in (1_201, 1_206):
        lines[place] = ",".join([*lines[place].split(",")[:5], "", ""])
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(lines) + "\n")
    found = trained(HoeffdingTreeRegressor(), path)
    assert (found.rows_learned, found.rows_without_target) == (ROWS - 2, 2)
    lines[1_501] = lines[1_501].rsplit(",", 1)[0] + ",much"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadRowError, match=r"bad\.csv, line 1502"):
        trained(HoeffdingTreeRegressor(), path)
    found = trained(HoeffdingTreeRegressor(), path, on_bad_row="skip")
    assert (found.refused.total(), found.rows_learned) == (1, ROWS - 3)


def test_training_resumes_from_a_checkpoint(folder, tmp_path):
    checkpoint = tmp_path / "C"
    whole = trained(
        HoeffdingTreeRegressor(), folder / "all.parquet", checkpoint=checkpoint, every=0
    )
    again = trained(
        HoeffdingTreeRegressor(), folder / "all.parquet", checkpoint=checkpoint, every=0
    )
    assert again.model.to_bytes() == whole.model.to_bytes()
    assert again.scores.tolist() == whole.scores.tolist()

"""The published results of forecasts are those of the last run of the benchmark."""

from benchmarks.forecasting import HORIZONS, LEFT_OUT, MARK, OURS, PAGE, ROWS, page, read_records


def test_the_table_of_the_page_is_made_of_the_records():
    assert PAGE.read_text(encoding="utf-8").split(MARK)[1] == page(read_records()).split(MARK)[1]


def test_each_series_has_every_horizon_and_learner():
    records = read_records()
    learners = {
        rows: {each.learner for each in records if each.rows == rows} for rows in (ROWS, 10_000)
    }
    assert OURS in learners[10_000] < learners[ROWS]
    assert len(learners[ROWS]) == 6
    for name, rows in {(record.series, record.rows) for record in records}:
        own = [record for record in records if (record.series, record.rows) == (name, rows)]
        assert {(each.horizon, each.learner) for each in own} == {
            (horizon, learner) for horizon in HORIZONS for learner in learners[rows]
        }
        assert all(each.rows > 2 * LEFT_OUT for each in own)

"""The published results of forecasts are those of the last run of the benchmark."""

from benchmarks.forecasting import HORIZONS, LEFT_OUT, MARK, OURS, PAGE, page, read_records


def test_the_table_of_the_page_is_made_of_the_records():
    assert PAGE.read_text(encoding="utf-8").split(MARK)[1] == page(read_records()).split(MARK)[1]


def test_each_series_has_every_horizon_and_learner():
    records = read_records()
    learners = {record.learner for record in records}
    assert OURS in learners
    assert len(learners) == 5
    for name in {record.series for record in records}:
        own = [record for record in records if record.series == name]
        assert {(each.horizon, each.learner) for each in own} == {
            (horizon, learner) for horizon in HORIZONS for learner in learners
        }
        assert all(each.rows > 2 * LEFT_OUT for each in own)

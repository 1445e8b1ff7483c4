"""The published coverage by hour is that of the last run of the benchmark."""

from benchmarks.coverage import LEAST_ROWS, MARK, NAMES, page, read_records
from benchmarks.forecasting import HORIZONS, PAGE


def test_the_table_of_the_page_is_made_of_the_records():
    assert PAGE.read_text(encoding="utf-8").split(MARK)[1] == page(read_records()).split(MARK)[1]


def test_each_series_has_every_horizon_and_hour():
    records = read_records()
    cases = [(name, horizon, hour) for name in NAMES for horizon in HORIZONS for hour in range(24)]
    assert [(each.series, each.horizon, each.hour) for each in records] == cases
    assert all(each.rows >= LEAST_ROWS and 0 < each.coverage < 1 for each in records)

"""The published results of many series are those of the last run of the benchmark."""

from benchmarks.panels import MARK, PAGE, SIZES, page, read_records


def test_the_table_of_the_page_is_made_of_the_records():
    assert PAGE.read_text(encoding="utf-8").split(MARK)[1] == page(read_records()).split(MARK)[1]


def test_each_panel_is_forecast_better_than_by_the_value_one_week_earlier():
    records = read_records()
    assert [each.series for each in records] == [shops for shops, _ in SIZES]
    for each in records:
        assert each.established < each.established_naive
        assert each.new < min(each.new_alone, each.new_naive)

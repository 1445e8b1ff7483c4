"""The published results of hybrids are those of the last run of the benchmark."""

import pytest

pytest.importorskip("pandas")

from benchmarks.hybrid import LATENCY, MARK, PAGE, TIMINGS, page, read_records


def test_the_tables_of_the_page_are_made_of_the_records():
    assert PAGE.read_text(encoding="utf-8").split(MARK)[1] == page(read_records()).split(MARK)[1]


def test_the_records_have_every_timing_and_latencies():
    records = read_records()
    streams = {record.data for record in records} - {LATENCY}
    assert len(streams) >= 20
    for name in streams:
        assert {record.timing for record in records if record.data == name} == {*TIMINGS}
    calls = {record.timing for record in records if record.data == LATENCY}
    assert calls == {"predict_one", "learn_one"}

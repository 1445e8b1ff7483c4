"""The write-ahead log and the checkpoint: cut short, damaged, full disks, two processes."""

import errno
import json
import os
import shutil

import pytest

from sapwood.serve import wal
from sapwood.serve.operations import Operation
from sapwood.serve.replica import Replica
from sapwood.serve.rows import Limits
from sapwood.serve.store import Snapshot, Store, StoreError
from sapwood.serve.wal import LogError, WriteAheadLog, packed, record_at
from sapwood.serve.writer import StorageError, Writer, WriterLimits
from sapwood.storage.container import ModelFileError
from serve_cases import PATIENCE, comparable, rows_of, saved, state_of


def filled(folder, payloads=(b"one", b"second", b"the third")):
    """The path of a log that has some records."""
    log = WriteAheadLog(folder)
    assert list(log.open(0)) == []
    log.append(list(payloads), 5.0)
    log.close()
    [(_, path)] = wal.segments_of(folder)
    return path


def read(folder, after=0):
    log = WriteAheadLog(folder)
    try:
        return [record.payload for record in log.open(after)], log
    finally:
        log.close()


def test_a_log_that_is_cut_anywhere_has_the_whole_records_before(tmp_path):
    path = filled(tmp_path)
    whole = path.read_bytes()
    ends = [wal.SEGMENT.size]
    for payload in (b"one", b"second", b"the third"):
        ends.append(ends[-1] + wal.HEADER.size + len(payload))
    assert ends[-1] == len(whole)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found, log = read(tmp_path)
        kept = sum(end <= length for end in ends[1:])
        assert found == [b"one", b"second", b"the third"][:kept]
        assert log.seq == kept
        again, _ = read(tmp_path)  # what was cut off is gone, and the rest is as it was
        assert again == found


def test_a_flipped_byte_is_noticed_or_costs_the_last_record_only(tmp_path):
    path = filled(tmp_path)
    whole = path.read_bytes()
    last = len(whole) - wal.HEADER.size - len(b"the third")
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        if place < last:
            with pytest.raises(LogError, match="restore it from a copy"):
                read(tmp_path)
            assert path.read_bytes() == damaged
        else:
            found, log = read(tmp_path)
            assert found == [b"one", b"second"]
            assert log.dropped == len(whole) - last
            assert path.with_suffix(".dropped").read_bytes() == damaged[last:]


def test_a_missing_segment_is_noticed(tmp_path):
    log = WriteAheadLog(tmp_path)
    list(log.open(0))
    for payload in (b"1", b"2", b"3"):
        log.append([payload], 0.0)
        log.rotate()
    log.close()
    assert read(tmp_path)[0] == [b"1", b"2", b"3"]
    assert read(tmp_path, after=2)[0] == [b"3"]
    wal.segments_of(tmp_path)[1][1].unlink()
    with pytest.raises(LogError, match="record 2 is missing"):
        read(tmp_path)


def test_removed_segments_are_those_before_a_checkpoint(tmp_path):
    log = WriteAheadLog(tmp_path)
    list(log.open(0))
    log.append([b"1", b"2"], 0.0)
    log.rotate()
    log.append([b"3"], 0.0)
    log.remove_before(1)
    assert read(tmp_path, after=1)[0] == [b"2", b"3"]
    log.remove_before(2)
    assert [first for first, _ in wal.segments_of(tmp_path)] == [3]
    log.close()


@pytest.mark.parametrize("fault", ["write", "partial", "fsync", "truncate"])
def test_what_cannot_be_written_is_not_in_the_log(tmp_path, monkeypatch, fault):
    filled(tmp_path, [b"kept"])
    log = WriteAheadLog(tmp_path)
    list(log.open(0))
    real = os.write

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    def partial(file, data):
        monkeypatch.setattr(wal.os, "write", full)
        return real(file, bytes(data)[: len(data) // 2])

    if fault == "fsync":
        monkeypatch.setattr(wal.os, "fdatasync", full)
    else:
        monkeypatch.setattr(wal.os, "write", partial if fault == "partial" else full)
    if fault == "truncate":
        monkeypatch.setattr(wal.os, "ftruncate", full)
    with pytest.raises(OSError, match="No space"):
        log.append([b"lost", b"as well"], 0.0)
    monkeypatch.undo()
    assert log.seq == 1
    # After a failed fsync nobody knows what the disk holds.
    assert (log.failed is not None) == (fault in ("fsync", "truncate"))
    if log.failed is None:
        log.append([b"next"], 0.0)
        log.close()
        assert read(tmp_path)[0] == [b"kept", b"next"]
    else:
        with pytest.raises(OSError, match="restart the server"):
            log.append([b"next"], 0.0)
        log.close()
        assert read(tmp_path)[0] == [b"kept"]


def test_a_record_within_a_record_is_not_taken_for_one(tmp_path):
    inner = packed(wal.Record(9, 0.0, b"inner"))
    path = filled(tmp_path, [b"one", b"x" + inner])
    assert read(tmp_path)[0] == [b"one", b"x" + inner]
    assert record_at(path.read_bytes(), wal.SEGMENT.size).payload == b"one"


# -- the files of a service ------------------------------------------------------------------------


class Running:
    """A writer without HTTP."""

    def __init__(self, path, **limits):
        self.store = Store(path)
        state = self.store.open()
        self.writer = Writer(self.store, state, Replica(state.host.copy()), WriterLimits(**limits))
        self.writer.start()

    def submit(self, kind, **body):
        operation = Operation(kind, json.dumps(body).encode())
        return self.writer.submit(operation, operation.read(Limits()))

    def learn(self, *rows):
        return self.submit("learn", rows=rows).result(PATIENCE).answer


def test_rows_survive_without_a_checkpoint(tmp_path):
    path = saved(tmp_path, 100)
    running = Running(path)
    running.learn(*rows_of(30))
    with pytest.raises(ValueError, match="must be a number"):
        running.learn({"x": {"a": "text"}, "y": 1.0})
    running.learn(*rows_of(3, seed=4))
    before = comparable(running.writer.state)
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert state_of(tmp_path / "copy" / path.name) == before
    running.writer.stop()
    assert state_of(path) == before
    assert [first for first, _ in wal.segments_of(running.store.folder)] == [before[0]["seq"] + 1]


def test_a_model_is_served_by_one_process(tmp_path):
    path = saved(tmp_path)
    running = Running(path)
    with pytest.raises(StoreError, match=f"process {os.getpid()}.*--read-only"):
        Store(path).open()
    running.writer.stop()
    Running(path).writer.stop()


def test_a_model_that_was_replaced_is_noticed(tmp_path):
    path = saved(tmp_path, 100)
    Running(path).writer.stop()
    saved(tmp_path, 200)
    with pytest.raises(StoreError, match="is not the model that the last checkpoint"):
        Store(path).open()
    shutil.rmtree(f"{path}.serve")
    Running(path).writer.stop()
    path.unlink()  # as the checkpoint has the model too
    assert state_of(path)[0]["rows"] == 200


def test_killed_between_checkpoint_and_model(tmp_path, monkeypatch):
    path = saved(tmp_path, 100)
    running = Running(path)
    running.learn(*rows_of(30))
    before = comparable(running.writer.state)

    def killed(*arguments):
        raise RuntimeError("killed")

    monkeypatch.setattr("sapwood.serve.store.write_atomically", killed)
    with pytest.raises(RuntimeError, match="killed"):
        running.store.write(Snapshot(running.writer.state))
    shutil.copytree(tmp_path, tmp_path / "copy")
    monkeypatch.undo()
    assert state_of(tmp_path / "copy" / path.name) == before
    running.writer.stop()


def test_killed_again_and_again_between_checkpoint_and_model(tmp_path, monkeypatch):
    """The file keeps the first model meanwhile, and is known to every further process."""
    path = saved(tmp_path, 100)
    Running(path).writer.stop()
    first = path.read_bytes()

    def killed(*arguments):
        raise RuntimeError("killed")

    monkeypatch.setattr("sapwood.serve.store.write_atomically", killed)
    for number in range(4):
        running = Running(path)
        running.learn(*rows_of(10, seed=number))
        with pytest.raises(RuntimeError, match="killed"):
            running.store.write(Snapshot(running.writer.state))
        before = comparable(running.writer.state)
        running.writer.state.seq = running.store.checkpoint_seq  # so that it stops as it is
        running.writer.stop()
        assert path.read_bytes() == first
    monkeypatch.undo()
    assert state_of(path) == before
    Running(path).writer.stop()


def test_a_damaged_checkpoint_is_noticed(tmp_path):
    path = saved(tmp_path, 100)
    Running(path).writer.stop()
    checkpoint = tmp_path / f"{path.name}.serve" / "checkpoint"
    whole = checkpoint.read_bytes()
    for place in range(0, len(whole), len(whole) // 50):
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        checkpoint.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            Store(path).open()
    checkpoint.write_bytes(whole[:-1])
    with pytest.raises(ModelFileError):
        Store(path).open()


def test_a_full_disk_stops_learning_until_there_is_room(tmp_path, monkeypatch):
    path = saved(tmp_path, 100)
    running = Running(path)
    running.learn(*rows_of(10))
    before = comparable(running.writer.state)

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(wal, "write_whole", full)
        with pytest.raises(StorageError, match="No space left"):
            running.learn(*rows_of(10, seed=2))
    assert comparable(running.writer.state) == before
    assert running.writer.failure is None
    assert running.learn(*rows_of(10, seed=2))["learned"] == 10
    running.writer.stop()


def test_a_clock_that_jumps_changes_nothing_but_dates(tmp_path, monkeypatch):
    path = saved(tmp_path, 100)
    running = Running(path, checkpoint_seconds=1e9)
    moments = iter([1e9, -5.0, 4e12, 0.0])
    monkeypatch.setattr("sapwood.serve.writer.time.time", lambda: next(moments, 7.0))
    for seed in range(4):
        running.learn(*rows_of(5, seed=seed))
    before = comparable(running.writer.state)
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert state_of(tmp_path / "copy" / path.name) == before
    assert before[0]["rows"] == 120
    running.writer.stop()

"""Checkpoints: whatever dies or is damaged, the newest good state is found, bit for bit."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_evaluate as naive
from sapwood import HoeffdingTreeRegressor
from sapwood.evaluate import Prequential
from sapwood.evaluate.checkpoint import KIND, CheckpointError, CheckpointFile
from sapwood.report import render
from sapwood.storage import atomic, container

IDENTITY = {"stream": "a list", "window": 30}
OUTPUTS = {"predictions.csv": 12, "bad.csv": 0}
STEP = 25


def stream_of(count=150, timed=False):
    rng = np.random.default_rng(3)
    rows = []
    for row in range(count):
        x = {"a": rng.normal(), "c": str(rng.choice(["red", "blue"]))}
        y = 4.0 * (x["a"] > 0) + (x["c"] == "red")
        x["a"] = None if row % 9 == 4 else x["a"]
        rows.append(
            (x, 1e200 if row % 40 == 11 else y, None if row < 3 else float(row))[: 2 + timed]
        )
        if row % 30 == 17:
            rows.append("no number")
    return naive.ListStream(rows)


STREAM, TIMED = stream_of(), stream_of(timed=True)


def new_run(stream=STREAM, delay=6, **options):
    tree = HoeffdingTreeRegressor(grace_period=20, delta=0.5)
    return Prequential(tree, stream, delay=delay, window=30, on_bad_row="skip", **options)


def state_of(run):
    """All that is known of a run, times included."""
    header, arrays = run.to_state()
    kept = {name: array.tobytes() for name, array in arrays.items()}
    return repr(header), kept, run.model.to_bytes()


def resumed(saved, **options):
    run = new_run(**options)
    run.learner.model = saved.model
    saved.resume(run)
    return run


class Folder:
    """A folder with a checkpoint, and the states that were saved to it."""

    def __init__(self, path):
        self.path = Path(path, "run.checkpoint")
        self.previous = Path(path, "run.checkpoint.previous")
        self.file = CheckpointFile(self.path)
        self.run = new_run()
        self.steps = self.run.steps(STEP)
        self.states = []

    def save(self):
        next(self.steps)
        self.states.append(state_of(self.run))
        self.file.save(self.run, IDENTITY, OUTPUTS)

    def newest(self):
        """Which of the states a new process would go on from; -1 is the last."""
        saved = CheckpointFile(self.path).load()
        assert (saved.identity, saved.outputs) == (IDENTITY, OUTPUTS)
        return self.states.index(state_of(resumed(saved))) - len(self.states)

    def reload(self):
        """Go on as a new process would."""
        self.file = CheckpointFile(self.path)
        saved = self.file.load()
        self.run = resumed(saved)
        self.steps = self.run.steps(STEP)
        return self.file.warning


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


# Going on


@settings(max_examples=20)
@given(
    timed=st.booleans(),
    delay=st.sampled_from([None, 1, 6, 40]),
    most_rows=st.integers(7, 60),
    interruptions=st.sets(st.integers(1, 15), max_size=4),
)
def test_a_run_that_is_killed_goes_on_to_the_same_end(
    tmp_path_factory, timed, delay, most_rows, interruptions
):
    path = tmp_path_factory.mktemp("killed") / "run.checkpoint"
    options = {"stream": TIMED if timed else STREAM, "delay": delay}
    whole = new_run(**options)
    for _ in whole.steps(most_rows):
        pass
    run, file, number = new_run(**options), CheckpointFile(path), 0
    assert file.load() is None
    steps = run.steps(most_rows)
    while next(steps, None) is not None:
        number += 1
        file.save(run, IDENTITY, OUTPUTS)
        if number in interruptions:
            file = CheckpointFile(path)
            run = resumed(file.load(), **options)
            steps = run.steps(most_rows)
    for each in (whole, run):
        each.seconds = each.learner.seconds = 0.0
        each.records[0].curve._seconds[:] = 0.0
    assert state_of(run) == state_of(whole)
    found, expected = run.finish(), whole.finish()
    times = dict.fromkeys(("seconds", "model_seconds", "rows_per_second"))
    assert found.to_dict() | times == expected.to_dict() | times
    for name in ("curve", "further", "recent"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
    assert found.sample.rows.tobytes() == expected.sample.rows.tobytes()
    assert found.sample.groups["c"][0] == expected.sample.groups["c"][0]
    assert found.importances == expected.importances
    assert run.model.to_bytes() == whole.model.to_bytes()


def test_a_resumed_run_writes_the_same_report(tmp_path):
    file = CheckpointFile(tmp_path / "run.checkpoint")
    whole, run = new_run(TIMED, None), new_run(TIMED, None)
    for _ in whole.steps(40):
        pass
    next(run.steps(40))
    file.save(run, IDENTITY, OUTPUTS)
    run = resumed(CheckpointFile(tmp_path / "run.checkpoint").load(), stream=TIMED, delay=None)
    for _ in run.steps(40):
        pass
    for each in (whole, run):
        each.seconds = each.learner.seconds = 0.0
        each.records[0].curve._seconds[:] = 0.0
    assert render(run.finish(), run.model) == render(whole.finish(), whole.model)


def test_before_anything_was_saved_there_is_nothing(folder):
    assert folder.file.load() is None
    assert folder.file.warning is None


def test_two_states_are_kept(folder):
    folder.save()
    assert os.listdir(folder.path.parent) == ["run.checkpoint"]
    folder.save()
    folder.save()
    assert sorted(os.listdir(folder.path.parent)) == ["run.checkpoint", "run.checkpoint.previous"]
    assert folder.newest() == -1
    folder.path.unlink()
    assert folder.newest() == -2


def test_only_between_steps_can_be_saved(folder):
    folder.save()
    folder.run.on_bad_row = "error"
    with pytest.raises(ValueError, match=r"refused|no number"):
        list(folder.steps)
    with pytest.raises(RuntimeError, match="inside of a step"):
        folder.file.save(folder.run, IDENTITY, OUTPUTS)
    assert folder.newest() == -1


# Death, and a disk that is full


class Death(BaseException):
    """The process is gone: no handler of it can do anything."""


class FailingSystem:
    """The calls of the system by which a file is saved, some of which raise.

    Parameters
    ----------
    error : exception
        What they raise.
    fails : callable
        Given the number of a call, from 0, says whether it does.
    """

    def __init__(self, patch, error=None, fails=lambda call: False):
        self.error, self.fails, self.calls = error, fails, 0
        for name in ("open", "replace", "fsync", "unlink", "chmod"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        patch.setattr(atomic, "open", self._open, raising=False)

    def count(self):
        self.calls += 1
        if self.fails(self.calls - 1):
            raise self.error

    def _counted(self, call):
        def counted(*arguments, **options):
            self.count()
            return call(*arguments, **options)

        return counted

    def _open(self, *arguments, **options):
        file = open(*arguments, **options)  # noqa: SIM115 - closed by whoever has it
        return HalfWritten(file, self) if "x" in arguments[1] else file


class HalfWritten:
    """A file that is written in two halves; between them the system may fail."""

    def __init__(self, file, system):
        self.file, self.system = file, system
        self.flush, self.fileno = file.flush, file.fileno

    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        self.system.count()
        self.file.write(data[len(data) // 2 :])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()


def after_saves(path, saves, damaged=False):
    path.mkdir()
    folder = Folder(path)
    for _ in range(saves):
        folder.save()
    if damaged:
        folder.path.write_bytes(folder.path.read_bytes()[:-1])
    return folder


def calls_of_a_save(path, saves, damaged=False):
    folder = after_saves(path, saves, damaged)
    with pytest.MonkeyPatch.context() as patch:
        system = FailingSystem(patch)
        folder.save()
    return system.calls


def assert_goes_on(folder):
    """Two more states are saved, and either can be read."""
    folder.save()
    folder.save()
    assert folder.newest() == -1
    folder.path.write_bytes(b"")
    assert folder.newest() == -2


@pytest.mark.parametrize(("saves", "damaged"), [(0, False), (1, False), (2, False), (2, True)])
def test_death_at_any_moment_of_saving_leaves_the_newest_good_state(tmp_path, saves, damaged):
    calls = calls_of_a_save(tmp_path / "alive", saves, damaged)
    assert calls >= 6
    survived = []
    for alive in range(calls):
        folder = after_saves(tmp_path / f"dead after {alive}", saves, damaged)
        with pytest.MonkeyPatch.context() as patch:
            FailingSystem(patch, Death(), lambda call, alive=alive: call >= alive)
            with pytest.raises(Death):
                folder.save()
        if saves == 0 and CheckpointFile(folder.path).load() is None:
            survived.append(-2)
            continue
        survived.append(folder.newest())
        folder.reload()
        assert_goes_on(folder)
    assert survived == sorted(survived)
    assert set(survived) <= {-3 if damaged else -2, -1}


@pytest.mark.parametrize("saves", [0, 1, 2])
def test_a_full_disk_leaves_the_older_state(tmp_path, saves):
    for failing in range(calls_of_a_save(tmp_path / "enough", saves)):
        folder = after_saves(tmp_path / f"full at {failing}", saves)
        with pytest.MonkeyPatch.context() as patch:
            full = OSError(errno.ENOSPC, "No space left on device")
            FailingSystem(patch, full, lambda call, failing=failing: call == failing)
            with pytest.raises(OSError, match="No space left"):
                folder.save()
        if saves:
            assert folder.newest() in {-1, -2}
        assert not [name for name in os.listdir(folder.path.parent) if name.endswith(".tmp")]
        assert_goes_on(folder)  # by the same process: there is room again


def test_what_cannot_be_written_is_told_by_the_name_that_was_given(folder):
    folder.path.parent.joinpath("run.checkpoint.next").mkdir()
    folder.save()
    with pytest.raises(IsADirectoryError) as caught:
        folder.save()
    assert caught.value.filename == str(folder.path)
    assert folder.newest() == -2


def test_a_file_that_is_taken_away_meanwhile_does_not_stop_the_run(folder):
    folder.save()
    folder.path.unlink()
    folder.save()
    assert folder.newest() == -1
    folder.save()
    folder.path.unlink()
    assert folder.newest() == -2


# Damage


def damages(data):
    """Copies of bytes, each with a byte changed or an end missing."""
    places = {*range(0, 64), *range(64, len(data), 397), *range(len(data) - 20, len(data))}
    for place in sorted(places):
        yield data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        yield data[:place]
    yield data + b"\0"
    yield b"not a model at all"


def test_a_damaged_file_lets_the_one_before_go_on(folder):
    folder.save()
    folder.save()
    data = folder.path.read_bytes()
    good = state_of(resumed(CheckpointFile(folder.previous).load()))
    for damaged in damages(data):
        folder.path.write_bytes(damaged)
        file = CheckpointFile(folder.path)
        saved = file.load()
        assert file.warning.startswith(f"{folder.path} ")
        assert file.warning.endswith(f"Going on from the one before, {folder.previous}")
        assert saved.model.to_bytes() == good[2]
    assert state_of(resumed(saved)) == good


def test_two_damaged_files_are_refused_in_words(folder):
    folder.save()
    folder.save()
    for path in (folder.path, folder.previous):
        path.write_bytes(path.read_bytes()[:-1])
    path, previous = (re.escape(os.fspath(name)) for name in (folder.path, folder.previous))
    complaint = rf"{path} is damaged: .*{previous} is damaged: .*remove it to start"
    with pytest.raises(CheckpointError, match=complaint):
        CheckpointFile(folder.path).load()


@pytest.mark.parametrize("other", ["previous", "none"])
def test_the_only_file_that_is_there_is_damaged(folder, other):
    folder.save()
    data = folder.path.read_bytes()[:-3]
    folder.path.unlink()
    (folder.previous if other == "previous" else folder.path).write_bytes(data)
    with pytest.raises(CheckpointError, match=r"is damaged: .* bytes are there of"):
        CheckpointFile(folder.path).load()


def test_a_model_is_no_checkpoint(folder):
    HoeffdingTreeRegressor().save(folder.path)
    with pytest.raises(
        CheckpointError, match="holds 'HoeffdingTreeRegressor', not 'sapwood checkpoint'"
    ):
        CheckpointFile(folder.path).load()


@pytest.mark.parametrize("reload", [False, True])
def test_a_damaged_file_never_replaces_a_good_one(folder, reload):
    folder.save()
    folder.save()
    for _ in range(2):
        kept = folder.previous.read_bytes()
        folder.path.write_bytes(folder.path.read_bytes()[:-1])
        if reload:
            assert "is damaged" in folder.reload()
        folder.save()
        assert folder.previous.read_bytes() == kept
        assert folder.newest() == -1
        assert folder.reload() is None
        folder.save()
        assert folder.newest() == -1


# Whole files that no run has saved


def content(run):
    """The header and the arrays of a checkpoint, as its file has them."""
    header, arrays = run.to_state()
    arrays["model"] = np.frombuffer(run.model.to_bytes(), np.uint8)
    return {"identity": IDENTITY, "outputs": OUTPUTS, "run": header}, arrays


def places_in(value, place=()):
    """The places in nested dicts, and the last ones in lists, as paths."""
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[-1:]
    for key, inner in items:
        yield (*place, key)
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*place, key))


def changed(value, place, new):
    """A copy of nested dicts and lists with another value in a place, or by KeyError with none."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(place) > 1:
        copy[place[0]] = changed(value[place[0]], place[1:], new)
    elif new is KeyError:
        del copy[place[0]]
    else:
        copy[place[0]] = new
    return copy


ODD_VALUES = [KeyError, None, True, -1, 0.5, -0.0, 2**70, 1e308, "", "x", [], [[]], {}, {"x": {}}]
ODD_ARRAYS = [
    KeyError,
    np.array(1.0),
    np.zeros(0),
    np.zeros(10),
    np.full(10, np.nan),
    np.full(10, -1e300),
    np.zeros((30, 2), np.int64),
    np.zeros((3, 2)),
    np.zeros((1, 1, 1, 1), np.uint8),
    np.zeros(4, [("row", "i8")]),
    np.array([0]),
    np.array([-(2**63)]),
]


def goes_on_or_is_refused(path, header, arrays, delay=6):
    """Whether a run goes on from a file to its end; if it does not, it is told in words."""
    path.write_bytes(container.pack(KIND, header, arrays))
    run = new_run(delay=delay)
    before, complaint = repr(run.to_state()), None
    try:
        saved = CheckpointFile(path).load()
        run.learner.model = saved.model
        saved.resume(run)
    except CheckpointError as error:
        complaint = str(error)
    if complaint is None:
        for _ in run.steps():
            pass
        run.finish()
        return True
    assert str(path) in complaint
    assert complaint.endswith("start over")
    assert repr(run.to_state()) == before
    return False


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("new", ODD_VALUES, ids=repr)
def test_headers_that_no_run_has_saved_are_refused_in_words(folder, new, share):
    """One place in `share` is changed to a value, others to the next values."""
    for _ in range(3):
        next(folder.steps)
    header, arrays = content(folder.run)
    assert goes_on_or_is_refused(folder.path, header, arrays)
    found = [place for place in places_in(header) if place[:2] != ("run", "position")]
    first = next(place for place, value in enumerate(ODD_VALUES) if value is new) % share
    places = [("run",), *found[first::share]]
    refused = [
        place
        for place in places
        if not goes_on_or_is_refused(folder.path, changed(header, place, new), arrays)
    ]
    assert ("run",) in refused
    assert len(refused) > len(places) // 2


def test_a_whole_file_that_no_run_has_saved_never_replaces_a_good_one(folder):
    folder.save()
    folder.save()
    header, arrays = content(folder.run)
    folder.path.write_bytes(container.pack(KIND, changed(header, ("run",), []), arrays))
    kept = folder.previous.read_bytes()
    assert "identity, outputs and run are no dicts" in folder.reload()
    folder.save()
    assert folder.previous.read_bytes() == kept


@pytest.mark.parametrize("position", ["x", 3, [], {"row": 1.5}, {"row": "1"}, {"row": True}])
def test_positions_that_no_stream_has_are_refused_in_words(folder, position):
    folder.save()
    header, arrays = content(folder.run)
    wrong = changed(header, ("run", "position"), position)
    assert not goes_on_or_is_refused(folder.path, wrong, arrays)


@pytest.mark.parametrize(
    "name", ["scores", "recent", "curve", "curve_seconds", "curve_interval", "model"]
)
def test_arrays_that_no_run_has_saved_are_refused_in_words(folder, name):
    for _ in range(5):
        next(folder.steps)
    header, arrays = content(folder.run)
    for new in ODD_ARRAYS:
        wrong = changed(arrays, (name,), new)
        accepted = goes_on_or_is_refused(folder.path, header, wrong)
        assert accepted == (name == "scores" and new is ODD_ARRAYS[3])


def test_a_run_of_another_kind_is_refused(folder):
    folder.save()
    saved = CheckpointFile(folder.path).load()
    complaint = rf"{re.escape(os.fspath(folder.path))} is not of such a run .*labels were"
    with pytest.raises(CheckpointError, match=complaint):
        saved.resume(new_run(delay=None))
    wider = Prequential(HoeffdingTreeRegressor(), STREAM, delay=6, window=31)
    with pytest.raises(CheckpointError, match="the saved window has 30 rows"):
        saved.resume(wider)


def test_what_a_killed_run_has_left_is_removed_and_nothing_else(tmp_path):
    left = [".C.0123456789abcdef.tmp", ".C.next.0123456789abcdef.tmp"]
    others = [".C2.0123456789abcdef.tmp", ".C.tmp", "C.0123456789abcdef.tmp", ".C.xyz.tmp"]
    for name in (*left, *others):
        (tmp_path / name).write_bytes(b"half")
    assert CheckpointFile(tmp_path / "C").load() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_what_another_run_writes_is_left_however_similar_its_name_is(tmp_path, monkeypatch):
    """Names of checkpoints that begin with the same 32 letters, and one is being written."""
    begin = "a-checkpoint-of-our-nightly-runs-of"
    written = tmp_path / f"{begin}-tuesday"
    names = [f"{begin}-monday", begin, f"{begin}-tuesday2", begin[:32], begin[:31]]
    replace = os.replace

    def meanwhile(source, target):
        for name in names:
            assert CheckpointFile(tmp_path / name).load() is None
        replace(source, target)

    monkeypatch.setattr(os, "replace", meanwhile)
    atomic.write_atomically(written, b"whole")
    assert written.read_bytes() == b"whole"

    def killed(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    monkeypatch.setattr(os, "unlink", lambda path: None)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_atomically(written, b"half")
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 2
    written.unlink()
    assert CheckpointFile(written).load() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_checkpoint_behind_a_link_keeps_the_link(tmp_path, there):
    """All files are where the link leads, however often it is saved."""
    disk, link = tmp_path / "disk", tmp_path / "link"
    disk.mkdir()
    link.symlink_to(disk / "C")
    run = new_run()
    if there:
        CheckpointFile(disk / "C").save(run, IDENTITY, OUTPUTS)
    file = CheckpointFile(link)
    assert (file.load() is not None) == there
    for count in range(3):
        file.save(run, {"count": count}, {})
        assert link.is_symlink()
        assert not (disk / "C").is_symlink()
        for path in (link, disk / "C"):
            assert CheckpointFile(path).load().identity == {"count": count}
    assert sorted(path.name for path in disk.iterdir()) == ["C", "C.previous"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]
    assert HoeffdingTreeRegressor().save(link) is None  # and so does a model
    assert link.is_symlink()

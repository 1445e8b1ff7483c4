"""Models and observers of other people: found by one way, complained of in the same words."""

import pytest

from cli_cases import assert_fails, invoke, write_csv
from sapwood.paper.errors import StudyError
from sapwood.paper.observers import find_contender

MODULE = """
def __getattr__(name):
    if name == "lazy":
        raise RuntimeError("asleep")
    raise AttributeError(name)

class Nest:
    class Model:
        def __init__(self, factory=1.0, complaint=2.0):
            self.value = factory + complaint
        def predict_one(self, x):
            return self.value
        def learn_one(self, x, y):
            pass
    deep = 3

def failing():
    raise OSError("no licence")
"""
FAULTS = {
    "nowhere_at_all:Model": "module nowhere_at_all cannot be imported: ModuleNotFoundError: No ",
    "broken_guests:Model": "module broken_guests cannot be imported: ZeroDivisionError: division",
    "guests:Model": "module guests has no Model: AttributeError: Model",
    "guests:Nest.Gone": "module guests has no Nest.Gone: AttributeError: type object 'Nest' has no",
    "guests:lazy": "module guests has no lazy: RuntimeError: asleep",
    "guests:Nest.deep": "Nest.deep cannot be called",
    "guests:failing": "making one failed: OSError: no licence",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guests.py").write_text(MODULE)
    (tmp_path / "broken_guests.py").write_text("1 / 0")
    write_csv(tmp_path / "a.csv", ["1,2", "2,3"], "a,y")
    return tmp_path


@pytest.mark.parametrize(("name", "words"), FAULTS.items())
def test_what_goes_wrong_is_told_in_the_same_words(folder, name, words) -> None:
    ended = invoke("evaluate", "a.csv", "-t", "y", "-m", name)
    assert_fails(ended, f"sapwood: model {name}: {words}")
    with pytest.raises(StudyError) as caught:
        find_contender(name)
    assert str(caught.value).startswith(f"observer {name}: {words}")


def test_parameters_may_have_any_name(folder) -> None:
    model = "guests:Nest.Model:factory=2,complaint=0.5"
    ended = invoke("evaluate", "a.csv", "-t", "y", "-m", model, "--json")
    assert ended.json()["total"]["mae"] == 0.5

"""Names of models and streams for readers: without class names and command-line syntax."""

import os
import re
from collections.abc import Iterable

from sapwood.evaluate.result import Evaluation

__all__ = ["file_name", "model_name", "names_of_models", "stream_name", "title_of"]

CLASSES = {
    "HoeffdingTreeRegressor": "Tree",
    "AdaptiveTreeRegressor": "Adaptive tree",
    "ForestRegressor": "Forest",
    "HybridRegressor": "Hybrid",
    "HoeffdingTreeClassifier": "Tree classifier",
    "AdaptiveTreeClassifier": "Adaptive tree classifier",
    "ForestClassifier": "Forest classifier",
}
SHORT = {
    "tree": "Tree",
    "adaptive": "Adaptive tree",
    "forest": "Forest",
    "hybrid": "Hybrid",
    "lightgbm": "LightGBM",
    "sgd": "Linear model (SGD)",
    "mean": "Mean so far",
    "last": "Last value",
}
"""Models as they are named at the command line."""
STAGES = {
    "LaggedModel": "lags",
    "NaiveStack": "a naive forecast",
    "TransformedRegressor": "a transformed target",
    "RecurringRegressor": "retired models",
    "MultiViewRegressor": "several views",
    "SparseRegressor": "sparse rows",
    "ScreenedRegressor": "screened features",
    "LossRegressor": "another loss",
    "CorrectedRegressor": "error correction",
    "IntervalRegressor": "prediction intervals",
    "MonitoredRegressor": "a drift monitor",
}
"""Models around models, in the order in which a title names them."""
WRAPPER = re.compile(rf"<({'|'.join(STAGES)})\((?=<)")
SPEC = re.compile(r"[a-z0-9-]+(:\w+=[^,]*(,\w+=[^,]*)*)?")
OF_FILE = re.compile(r"(.*\.\w+):(\w+=.*)", re.DOTALL)
"""A file with settings, as `sapwood compare` reads it."""


def title_of(evaluation: Evaluation) -> str:
    """Return the title of a report: what was evaluated on which stream."""
    shown = [evaluation, *evaluation.targets.values()]
    levels = next((found.intervals.levels for found in shown if found.intervals is not None), ())
    name = model_name(evaluation.model, levels)
    several = f" for {len(evaluation.targets)} targets" if evaluation.targets else ""
    return f"{name}{several} on {stream_name(evaluation.stream)}"


def model_name(model: str, levels: Iterable[float] = ()) -> str:
    """Return a model in words, by its repr.

    - `levels`: those of its prediction intervals, if it has some.

    Examples
    --------
    >>> forest = "<ForestRegressor(): 10 members, 5 leaves, 9 rows learned>"
    >>> model_name(f"<LaggedModel(<IntervalRegressor({forest}, levels=(0.9))>, Lags())>", [0.9])
    'Forest with lags and 90 % prediction intervals'
    >>> model_name(f"<NaiveStack({forest}, 'y.lag24h', None)>")
    'Forest with a naive forecast'
    >>> model_name("<ARFRegressor of river>"), model_name("<LightGBM, 5 trees for each 1000 rows>")
    ('ARFRegressor (river)', 'LightGBM')
    """
    stages = set()
    while found := WRAPPER.match(model):
        model = model[found.end() :]
        stages.add(found[1])
    parts = [words for name, words in STAGES.items() if name in stages]
    if "IntervalRegressor" in stages and (shares := [f"{100 * level:g}" for level in levels]):
        parts[-1] = f"{_joined(shares)} % {parts[-1]}"
    of_library = re.fullmatch(r"<(\w+) of (\w+)>", model)
    called = re.match(r"<?(\w+)\(", model)
    if of_library:
        name = f"{of_library[1]} ({of_library[2]})"
    elif called:
        name = CLASSES.get(called[1], called[1])
    else:
        name = CLASSES.get(model, model)
        if re.fullmatch(r"<[^<>]*>", model):
            name = model[1:-1].partition(",")[0]
            name = name[:1].upper() + name[1:]
    return f"{name} with {_joined(parts)}" if parts else name


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def names_of_models(specs: Iterable[str]) -> dict[str, str]:
    """Return models in words, by what was typed at the command line; no two have the same name.

    - `specs`: as they were typed, or any other names, which stay as they are.

    Examples
    --------
    >>> list(names_of_models(["forest", "forest:seed=3", "river:ARFRegressor", "mine"]).values())
    ['Forest', 'Forest (seed 3)', 'ARFRegressor (river)', 'mine']
    """
    specs = list(specs)
    named = {spec: _in_words(spec) for spec in specs}
    known = list(named.values())
    return {spec: name if known.count(name) == 1 else spec for spec, name in named.items()}


def _in_words(spec: str) -> str:
    if spec.startswith("river:"):
        name, _, settings = spec.removeprefix("river:").partition(":")
        details = ["river", *_settings(settings)]
    else:
        short, _, settings = spec.partition(":")
        if short not in SHORT:
            other = re.fullmatch(r"([\w.]+):(\w+)", spec)
            return f"{other[2]} ({other[1]})" if other else file_name(spec)
        name, details = SHORT[short], _settings(settings)
    return f"{name} ({', '.join(details)})" if details else name


def _settings(text: str) -> list[str]:
    pairs = (each.partition("=") for each in text.split(",") if each)
    return [f"{name.replace('_', ' ')} {value}".rstrip() for name, _, value in pairs]


def stream_name(stream: str) -> str:
    """Return a stream in words: a file without its folders, a generator without its syntax.

    Examples
    --------
    >>> stream_name("/data/bike_hour.csv"), stream_name("demand:rows=5000,seed=3")
    ('bike_hour.csv', 'demand (rows 5000, seed 3)')
    >>> stream_name("data/bikes.csv:target=count,drop=casual")
    'bikes.csv (target count, drop casual)'
    """
    if of_file := OF_FILE.fullmatch(stream):
        return f"{file_name(of_file[1])} ({', '.join(_settings(of_file[2]))})"
    if ":" in stream and SPEC.fullmatch(stream):
        name, _, settings = stream.partition(":")
        return f"{name} ({', '.join(_settings(settings))})"
    return file_name(stream)


def file_name(stream: str) -> str:
    """Return the name of a file without its folders; of other streams the whole name."""
    return os.path.basename(os.path.normpath(stream)) or stream

"""Models by the names of the command line: of Sapwood, saved, baselines, or of other libraries."""

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import sapwood
from sapwood import load, validation
from sapwood.classify.leaves import NAIVE_BAYES
from sapwood.cli.failure import UsageError
from sapwood.cli.values import byte_count, literal, split_spec
from sapwood.factories import find_factory, make, see_current_folder
from sapwood.model import StoredModel, can_be_saved
from sapwood.observers import EBSTObserver, QuantizerObserver, TEBSTObserver
from sapwood.streams.schema import nearest
from sapwood.streams.stream import Stream, StreamError
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.evaluate.class_run import ClassRun
    from sapwood.evaluate.prequential import Prequential

__all__ = [
    "DEFAULTS_SHOWN",
    "MODEL_HELP",
    "blaming_others",
    "check_levels",
    "check_savable",
    "make_classifier",
    "make_model",
    "saved_model",
    "targets_of",
    "with_bounds",
    "with_named_stage",
    "with_stage",
]

OWN = {
    "tree": "HoeffdingTreeRegressor",
    "adaptive": "AdaptiveTreeRegressor",
    "forest": "ForestRegressor",
}
CLASSIFIERS = {
    "tree": "HoeffdingTreeClassifier",
    "adaptive": "AdaptiveTreeClassifier",
    "forest": "ForestClassifier",
}
STAGES = {
    "screened": "ScreenedRegressor",
    "views": "MultiViewRegressor",
    "recurring": "RecurringRegressor",
    "sparse": "SparseRegressor",
}
COLUMNS = ("without", "crosses", "always")  # parameters of stages that are lists of columns
LAGS = "lags"  # all lag features, in such a list
HYBRID = "hybrid"
TREES = {"tree": 1, "adaptive": 2}  # that learn; those of a forest are counted
BASELINES = ("mean", "last")
SHORT = ("lightgbm", "sgd")
RIVER = "river"
BYTES_PER_FEATURE = 1_200_000
LEAST_FEATURES = 10

OBSERVERS = "qo, qo:RADIUS, ebst or tebst:DIGITS"
PARAMETERS = {
    name: value
    for name, value in sapwood.HoeffdingTreeRegressor().parameters.items()
    if name != "categorical"
}
SHOWN = {
    **{name: str(value).lower() for name, value in PARAMETERS.items()},
    "grace_period": f"{PARAMETERS['grace_period']:g}",
    "observer": "qo",
    "max_bytes": "12MB or 1.2MB a feature",
    "no_splits": "none",
}
DEFAULTS_SHOWN = ", ".join(f"{name}={value}" for name, value in SHOWN.items())
MODEL_HELP = (
    "tree (the default), the fastest; adaptive, a tree that follows changes; forest, the most "
    "accurate of them; hybrid, a forest and a batch learner that is refitted (see --batch); mean "
    "or last, to compare with; a saved model's FILE, to go on with it; "
    "lightgbm, sgd or river:CLASS, such as river:ARFRegressor, of other libraries; or "
    "MODULE:FACTORY for anything else that has predict_one and learn_one."
)


def saved_model(name: str) -> Any:
    """Read the model if a name is that of a file; return None if it is another."""
    if split_spec(name)[0] in (*OWN, HYBRID, *BASELINES, *SHORT) or not os.path.exists(name):
        return None
    return load(name)


def targets_of(model: Any) -> tuple[str, ...]:
    """Return the targets of a saved model, by the names of their columns; none if it has no name.

    A model that learned in Python has one only if it has lags, or several targets.
    """
    lags = getattr(getattr(model, "lags", None), "target", ())
    several = model.targets if getattr(model, "several_targets", False) else ()
    named = model.schema.targets if isinstance(model, StoredModel) else ()
    found = named or tuple(several) or ((lags,) if isinstance(lags, str) else tuple(lags))
    return tuple(map(str, found))


def make_model(
    name: str, settings: Mapping[str, str], stream: Stream, batch: str | None = None
) -> Any:
    """Make a model for a stream.

    - `name`: "tree", "adaptive", "forest", the name of a baseline, or ``module:factory``; settings
      may follow after a colon.
    - `stream`: whose features decide what is a category, and how much memory a tree may take.
    - `batch`: the batch learner of a hybrid, or the file of its LightGBM model.
    """
    name, own = split_spec(name)
    given = {**settings, **own}
    if name == HYBRID:
        return _make_hybrid(given, stream, batch)
    if batch is not None:
        raise UsageError(f"--batch {batch}: model {name} has no batch learner; use -m hybrid")
    if name in OWN:
        return _make_own(name, given, stream)
    if name in BASELINES:
        if given:
            raise UsageError(f"model {name} has no parameter {next(iter(given))}")
        return _baselines()[name]()
    library, _, kind = name.partition(":")
    if name in SHORT or (library == RIVER and kind):
        return _make_short(library, kind, {key: literal(value) for key, value in given.items()})
    if ":" in name:
        return _make_other(name, {key: literal(value) for key, value in given.items()})
    known = [*OWN, HYBRID, *BASELINES, *SHORT]
    raise UsageError(
        f"model {name}: neither a file nor a model: {nearest(name, known)}; others are given as "
        "river:CLASS or MODULE:FACTORY"
    )


def with_stage(model: Any, option: str, stage: str, value: str | None) -> Any:
    """Return a model within a stage that an option requests; itself if it does not."""
    if value is None:
        return model
    try:
        return getattr(sapwood, stage)(model, value)
    except ValueError as error:
        raise UsageError(f"{option} {value}: {error}") from None


def with_named_stage(
    model: Any, text: str | None, features: Iterable[Label], lag_features: Sequence[Label] = ()
) -> Any:
    """Return a model within a stage that --stage names; itself if there is none.

    - `features`: the features of the stream.

    Examples
    --------
    >>> tree, columns = sapwood.HoeffdingTreeRegressor(), ["shop", "item", "east", "north"]
    >>> with_named_stage(tree, "views:crosses=shop:item+east:north:0.5", columns).crosses
    (('shop', 'item'), ('east', 'north', 0.5))
    """
    if text is None:
        return model
    name, settings = split_spec(text)
    if name not in STAGES:
        raise UsageError(f"--stage {name}: {nearest(name, [*STAGES])}")
    stage = getattr(sapwood, STAGES[name])
    known = [each for each in inspect.signature(stage).parameters if each != "model"]
    for each in settings.keys() - {*known}:
        raise UsageError(f"--stage {name} has no parameter {each}: {nearest(each, known)}")
    columns = {str(each): [each] for each in (*features, *lag_features)}
    if lag_features:
        columns.setdefault(LAGS, [*lag_features])
    try:
        given = {each: _of_stage(each, value, columns) for each, value in settings.items()}
        return stage(model, **given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--stage {text}: {error}") from None


def _of_stage(name: str, value: str, known: Mapping[str, list[Label]]) -> Any:
    """Return the value of a parameter of a stage.

    Columns are joined by +, and those of a cross by :. `known` has the columns by what is typed.
    """
    if name == "max_bytes":
        return byte_count(value)
    if name not in COLUMNS:
        return literal(value)
    parts = [each.split(":") for each in value.split("+") if each]
    for each in chain.from_iterable(own[:2] for own in parts):
        if each == LAGS and LAGS not in known:
            raise ValueError("there are no lag features: add --lags, or leave lags out")
        if each not in known:
            raise ValueError(f"no column {validation.shown(each)}: {nearest(each, known)}")
    if name != "crosses":
        return [*chain.from_iterable(known[each] for own in parts for each in own)]
    return [(*(known[each][0] for each in own[:2]), *map(literal, own[2:])) for own in parts]


def with_bounds(model: Any, levels: Sequence[float]) -> Any:
    """Return a model with prediction intervals of some levels; itself if none are given, or it has them."""
    from sapwood.intervals import IntervalRegressor
    from sapwood.lags import LaggedModel

    if not levels:
        return model
    if isinstance(model, LaggedModel):
        model.model = with_bounds(model.model, levels)
        return model
    if isinstance(model, IntervalRegressor):
        check_levels(model, levels)
        return model
    try:
        return IntervalRegressor(model, levels)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--interval: {error}") from None


def check_levels(model: Any, levels: Sequence[float]) -> None:
    """Raise an error if a saved model has no prediction intervals of some levels."""
    known = getattr(model, "levels", ())
    if not known:
        raise UsageError(
            "--interval: the model has no prediction intervals; train it with --interval, or "
            "resume it with sapwood train --model FILE --interval LEVEL"
        )
    for level in levels:
        if level not in known:
            levels_of_model = ", ".join(f"{each:g}" for each in known)
            raise UsageError(
                f"--interval {level:g}: the model has prediction intervals of {levels_of_model}"
            )


def check_savable(model: Any, option: str) -> None:
    """Complain if a model is not one that can be saved."""
    if not can_be_saved(model):
        kind = type(getattr(model, "model", model)).__name__
        raise UsageError(f"{option}: a {kind} cannot be saved, as it lacks to_bytes and from_bytes")


@contextmanager
def blaming_others(run: "Prequential | ClassRun") -> Iterator[None]:
    """Report errors of a model of another library with its name."""
    try:
        yield
    except (OSError, StreamError, UsageError):
        raise
    except Exception as error:
        if type(run.model).__module__.startswith("sapwood."):
            raise
        model = type(run.model).__name__
        raise UsageError(f"model {model}: {type(error).__name__}: {error}") from error


def _baselines() -> dict[str, type[Any]]:
    from sapwood.evaluate.baselines import LastValue, RunningMean

    return dict(zip(BASELINES, (RunningMean, LastValue), strict=True))


def make_classifier(
    name: str, settings: Mapping[str, str], features: Mapping[Any, Any], declared: Sequence[Any]
) -> Any:
    """Make one of our classifiers.

    - `name`: "tree", "adaptive" or "forest"; settings may follow after a colon.
    - `features`: the features of the stream, which decide how much memory there may be.
    - `declared`: those that are categories although their values are numbers.
    """
    name, own = split_spec(name)
    if name not in CLASSIFIERS:
        raise UsageError(f"--task classes: model {name}: {nearest(name, list(CLASSIFIERS))}")
    kind = getattr(sapwood, CLASSIFIERS[name])
    return _made(name, kind, {**settings, **own}, len(features), declared)


def _make_own(name: str, settings: Mapping[str, str], stream: Stream) -> Any:
    kind = getattr(sapwood, OWN[name])
    return _made(name, kind, settings, len(stream.features), stream.declared)


def _made(
    name: str, kind: Any, settings: Mapping[str, str], count: int, declared: Sequence[Any]
) -> Any:
    known = inspect.signature(kind).parameters
    parameters: dict[str, Any] = {"categorical": declared}
    for setting, text in settings.items():
        if setting == "categorical":
            raise UsageError(f"categorical={text}: use --categorical for that")
        if setting not in known:
            names = [each for each in known if each != "categorical"]
            complaint = nearest(setting, names)
            raise UsageError(f"the {name} has no parameter {setting}: {complaint}")
        try:
            parameters[setting] = _parameter(setting, text)
        except ValueError as error:
            raise UsageError(f"{setting}={text}: {error}") from None
    if "max_bytes" not in parameters and parameters.get("leaf") not in NAIVE_BAYES:
        features = max(LEAST_FEATURES, count)
        members = parameters.get("members", known["members"].default) if name == "forest" else 0
        trees = TREES.get(name) or (members + 1 if isinstance(members, int) else 1)
        parameters["max_bytes"] = BYTES_PER_FEATURE * features * trees
    try:
        return kind(**parameters)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _make_hybrid(settings: Mapping[str, str], stream: Stream, batch: str | None) -> Any:
    """Make a hybrid; settings that are none of its own are those of its online model."""
    from sapwood.hybrid import HybridRegressor

    known = inspect.signature(HybridRegressor).parameters
    own = {name: text for name, text in settings.items() if name in known}
    online = own.pop("online", "forest")
    learner = batch or own.pop("batch", None)
    if online not in OWN:
        raise UsageError(f"online={online}: {nearest(online, list(OWN))}")
    others = {name: text for name, text in settings.items() if name not in known}
    model = _make_own(online, others, stream)
    try:
        parameters = {name: _parameter(name, text) for name, text in own.items()}
        if learner is not None and os.path.exists(learner):
            return HybridRegressor(model, _booster(learner), **{"refit": None, **parameters})
        return HybridRegressor(model, learner, **parameters)
    except ModuleNotFoundError as error:
        raise UsageError(f"model hybrid: {error}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"model hybrid: {error}") from None


def _booster(path: str) -> Any:
    """Return the LightGBM model of a file, in its own text format."""
    import lightgbm

    try:
        return lightgbm.Booster(model_file=path)
    except lightgbm.basic.LightGBMError as error:
        raise UsageError(f"--batch {path}: no model of LightGBM: {error}") from None


def _parameter(name: str, text: str) -> Any:
    if name == "no_splits":
        return [] if text.lower() == "none" else text.split("+")
    if text.lower() == "none":
        return None
    if name == "observer":
        return _observer(text)
    if name == "max_bytes":
        return byte_count(text)
    return literal(text)


def _observer(text: str) -> Any:
    kind, _, value = text.lower().partition(":")
    if kind == "qo":
        return QuantizerObserver(slots=32) if not value else QuantizerObserver(literal(value))
    if kind == "ebst" and not value:
        return EBSTObserver()
    if kind == "tebst":
        return TEBSTObserver(digits=literal(value or "3"))
    raise ValueError(f"{OBSERVERS} is expected")


def _make_short(library: str, kind: str, parameters: dict[str, Any]) -> Any:
    from sapwood.evaluate.others import OTHERS

    given = (kind,) if kind else ()
    try:
        return OTHERS[library](*given, **parameters)
    except ModuleNotFoundError as error:
        package = "scikit-learn" if library == "sgd" else library
        words = f"model {library}: {error.name} is not installed: pip install {package}"
        raise UsageError(words) from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"model {library}: {error}") from None


def _make_other(name: str, parameters: dict[str, Any]) -> Any:
    def complaint(words: str) -> UsageError:
        return UsageError(f"model {name}: {words}")

    see_current_folder()
    return make(find_factory(name, complaint), complaint, **parameters)

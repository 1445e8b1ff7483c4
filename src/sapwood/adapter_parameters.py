"""The parameters of a model as attributes, for its adapters to other libraries."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from sapwood import validation
from sapwood.model import StoredModel
from sapwood.stages.stage import rows_learned

__all__ = ["AdapterParameters", "new_copy"]


class AdapterParameters:
    """Keeps what it is given under the names that a model takes.

    Both river and scikit-learn find the parameters of an estimator in the signature of its
    `__init__` and their values in attributes of the same names. So the signature of a class with a
    `_model_class` is that of the model. Nothing is checked before a model is made.

    Examples
    --------
    >>> from sapwood import HoeffdingTreeRegressor
    >>> class Face(AdapterParameters):
    ...     _model_class = HoeffdingTreeRegressor
    >>> Face(max_depth=3)._new_model()
    <HoeffdingTreeRegressor(max_depth=3): 1 leaves, 0 rows learned>
    """

    _model_class: ClassVar[type[Any]]
    _own_parameters: ClassVar[dict[str, Any]] = {}
    """Parameters of the adapter itself, and other defaults of those of the model."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_model_class" in cls.__dict__ and "__init__" not in cls.__dict__:
            cls.__init__ = _initialiser(cls._model_class, cls._own_parameters)  # type: ignore[method-assign]

    def _prepare(self) -> None:
        """Do what is to be done once the parameters are kept."""

    def _new_model(self) -> Any:
        """Return an empty model of these parameters, or raise ValueError for a bad one."""
        names = inspect.signature(self._model_class).parameters
        given = {name: getattr(self, name) for name in names}
        for name, value in given.items():
            if isinstance(value, Iterator):
                raise ValueError(
                    f"{name} = {validation.shown(value)} can be read but once, and is needed for every "
                    "new model; make it a list"
                )
        return self._model_class(**given)


def new_copy(model: Any) -> Any:
    """Return a copy of a model that an adapter was given, if it has learned nothing.

    Raises
    ------
    TypeError, ValueError
        If it is no regression model of Sapwood, or has learned rows.
    """
    if not isinstance(model, StoredModel) or not hasattr(model, "learn_many"):
        raise TypeError(f"model = {validation.shown(model)}: a model of Sapwood is expected")
    if hasattr(model, "predict_proba_one"):
        raise TypeError(f"model = {validation.shown(model)}: no classifier is expected")
    if rows_learned(model):
        raise ValueError("the model has learned rows itself: give a new one")
    return model.copy()


def _initialiser(model_class: type[Any], own: dict[str, Any]) -> Callable[..., None]:
    """Return an `__init__` that keeps the parameters of a model and those of its adapter."""
    of_model = inspect.signature(model_class.__init__)
    known = dict(of_model.parameters)
    for name, default in own.items():
        added = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        known[name] = known.get(name, added).replace(default=default)
    signature = of_model.replace(parameters=[*known.values()])

    @functools.wraps(model_class.__init__)
    def keep(self: Any, *positional: Any, **parameters: Any) -> None:
        given = signature.bind(self, *positional, **parameters)
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(self, name, value)
        self._prepare()

    keep.__signature__ = signature  # type: ignore[attr-defined]
    return keep

"""A model that minimises a loss by its first and second derivatives."""

import math
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.loss.losses import LOSSES, Loss, NamedLoss
from sapwood.model import State
from sapwood.regressor import Regressor
from sapwood.stages.one_target import (
    LabelledRows,
    OneTargetStage,
    check_entries,
    checked_model,
    checked_numbers,
)
from sapwood.stages.rows import GivenRow, rows_of
from sapwood.stages.stage import passed_on, rows_learned

__all__ = ["LossRegressor"]

FloatArray = NDArray[np.float64]

SUMS, NUMBERS = "sums", "numbers"
LIGHTEST, HEAVIEST = 0.01, 100.0  # that a row counts for, where the mean is 1
KEPT = 0.999  # of the mean loss, a row later


class Sums(NamedTuple):
    """What is known of derivatives and losses.

    Attributes
    ----------
    weight, hessian : float
        The weight of rows, and the sum of their second derivatives.
    loss_weight, loss : float
        The same of losses, exponentially weighted.
    """

    weight: float = 0.0
    hessian: float = 0.0
    loss_weight: float = 0.0
    loss: float = 0.0


class Held(NamedTuple):
    """All that learning changes; a batch is learned aside, and then put in place as one."""

    model: Regressor
    loss: Any
    sums: Sums

    def copy(self) -> "Held":
        """Return an independent copy; a loss of the caller's own is shared."""
        return Held(self.model.copy(), _copied(self.loss), self.sums)


class LossRegressor(OneTargetStage):
    """A model that minimises the Huber, Poisson or winsorized loss, or a loss of your own.

    The model inside predicts a raw value, such as the logarithm of the mean. A row whose loss has the
    derivatives g and h there is learned as the label ``raw - g / h`` of weight h, as in Newton's
    method (stochastic gradient trees). Weights are divided by their mean.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target that has learned nothing yet.
    loss : {"poisson", "huber", "winsorized"} or Loss
        "poisson" is for counts, "huber" for targets with large errors, and "winsorized" for isolated
        outliers. An object with the methods of `sapwood.loss.Loss` is a loss of your own; a model
        with one cannot be saved.

    Notes
    -----
    It is an option for experts: `TransformedRegressor` predicts real counts better. Rows are
    learned one by one, in Python, and a batch on a copy of the model: learn small batches by rows.

    References
    ----------
    H. Gouk, B. Pfahringer, E. Frank, "Stochastic gradient trees", ACML 2019.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(0, 3, 4_000)
    >>> model = sapwood.LossRegressor(sapwood.HoeffdingTreeRegressor(), "poisson")
    >>> model.learn_many({"x": x}, rng.poisson(np.exp(x)).astype(float))
    >>> bool(6.5 < model.predict_one({"x": 2.0}) < 8.5)
    True
    """

    kind: ClassVar[str] = "LossRegressor"
    format: ClassVar[int] = 1
    _one = "a loss is for one; use a model for each"

    def __init__(
        self, model: Any, loss: Literal["poisson", "huber", "winsorized"] | Loss = "poisson"
    ) -> None:
        super().__init__()
        inner = checked_model(model, "the model with the loss")
        self._held = Held(inner, _checked_loss(loss), Sums())

    @property
    def model(self) -> Any:
        """The model of the raw value."""
        return self._held.model

    @property
    def loss(self) -> Any:
        """The name of the loss, or the object that was given."""
        loss = self._held.loss
        return loss.name if isinstance(loss, NamedLoss) else loss

    @property
    def mean_loss(self) -> float:
        """The mean loss of predictions just before their rows, exponentially weighted; or NaN."""
        sums = self._held.sums
        return sums.loss / sums.loss_weight if sums.loss_weight > 0.0 else math.nan

    # -- learning and predicting ------------------------------------------------------------------

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        held = self._held
        raw, regions = rows.place(held.model, record)
        if not rows_learned(held.model):
            return np.zeros(len(raw)), regions
        return np.array([float(held.loss.inverse(each)) for each in raw.tolist()]), regions

    def _learn(self, batch: LabelledRows) -> None:
        rows, y, w, found, regions, delayed = batch
        validation.check_values(y, w)
        if isinstance(rows, GivenRow):
            self._learn_given(rows, float(y[0]), float(w[0]))
            return
        given = rows_of(rows.X, self.model.features)
        validation.check_labels(len(given), len(y))
        held = self._held
        model, newton = held.model.copy(), Newton(held.loss, held.sums)
        keys = [0] * len(given) if rows.ids is None else rows.ids.tolist()
        known, record = rows_learned(model) or 0.0, not delayed
        labelled = zip(given, y.tolist(), w.tolist(), keys, strict=True)
        for place, (x, label, weight, key) in enumerate(labelled):
            raw, region = model._place_one(x, key, record)
            found[place] = newton.loss.inverse(raw) if known else 0.0
            if regions is not None:
                regions[place] = region
            model._learn_row(x, *newton.step(label, raw, weight, known), key)
            known += 1.0
        self._held = Held(model, newton.loss, newton.sums)

    def _learn_given(self, row: GivenRow, y: float, w: float) -> None:
        """Learn one row without a copy of the model."""
        held = self._held
        raw = held.model._place_one(row.x, row.key, False)[0]
        newton = Newton(held.loss, held.sums)
        own, share = newton.step(y, raw, w, rows_learned(held.model))

        def finish() -> None:
            self._held = Held(held.model, newton.loss, newton.sums)

        self._both(
            lambda: held.model._learn_row(row.x, own, share, row.key),
            finish,
            lambda: self._held is held,
        )

    def _check_labels(self, y: FloatArray) -> None:
        loss = self._held.loss
        for place, label in enumerate(y.tolist()):
            problem: str | None = None
            if not math.isfinite(label):
                problem = "a finite number is expected"
            elif isinstance(loss, NamedLoss):
                problem = loss.problem(label)
            if problem is not None:
                raise ValueError(
                    f"y = {label:g} at position {place}: {problem}; drop the row, or use the model "
                    "without this loss"
                )

    # -- looking inside ---------------------------------------------------------------------------

    to_rules = passed_on("Return one rule for each leaf; their numbers are of the raw value.")

    def _own_bytes(self) -> int:
        return 8 * len(Sums._fields)

    def __repr__(self) -> str:
        return f"<LossRegressor({self.model!r}, {self.loss!r})>"

    # -- files and copies -------------------------------------------------------------------------

    @property
    def can_be_saved(self) -> bool:
        """Whether files and pickles can hold it: not if the loss is your own."""
        return isinstance(self._held.loss, NamedLoss)

    def copy(self) -> Self:
        """Return an independent copy; a loss of your own is shared."""
        with self._turn():
            made = self._made()
            made._held = self._held.copy()
            return made

    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        _, loss, sums = self._held
        if not isinstance(loss, NamedLoss):
            raise ValueError(
                f"loss = {validation.shown(loss)}: files hold no code, so a model with a loss of your "
                "own cannot be saved; save the model inside (.model), load it, and apply "
                "loss.inverse to its predictions"
            )
        numbers = np.array(loss.to_numbers(), np.float64)
        return {"loss": loss.name}, {SUMS: np.array(sums, np.float64), NUMBERS: numbers}

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        check_entries(state, {"loss"}, {SUMS, NUMBERS})
        sums = checked_numbers(state.arrays[SUMS], (len(Sums._fields),), "the sums of losses")
        numbers, name = state.arrays[NUMBERS], state.header["loss"]
        if name not in LOSSES or (sums[:3] < 0.0).any() or numbers.dtype != np.float64:
            raise ValueError("the loss, or its sums, cannot be")
        made = cls._made()
        loss = LOSSES[name].from_numbers(numbers.reshape(-1).tolist())
        made._held = Held(models[0], loss, Sums(*sums.tolist()))
        return made


class Newton:
    """Newton's steps of rows: as which label of which weight each is learned.

    Parameters
    ----------
    loss : Loss
        Learns from the rows, if it is a named one.
    sums : Sums
        What is known of derivatives and losses.
    """

    def __init__(self, loss: Any, sums: Sums) -> None:
        self.loss = _copied(loss)
        self._update = self.loss.update if isinstance(loss, NamedLoss) else None
        self._weight, self._hessian, self._loss_weight, self._loss = sums

    @property
    def sums(self) -> Sums:
        """What is known of derivatives and losses after the rows."""
        return Sums(self._weight, self._hessian, self._loss_weight, self._loss)

    def step(self, y: float, raw: float, w: float, rows: float | None) -> tuple[float, float]:
        """Return the label and the weight of a row, and learn from it.

        Parameters
        ----------
        y, raw, w : float
            The label, the raw prediction, and the weight of the row.
        rows : float, optional
            The number of rows learned.

        Raises
        ------
        ValueError
            If a derivative is not finite, or the second one not above 0.
        """
        loss, share = self.loss, 1.0
        if not rows:  # there is no raw prediction yet
            raw = label = _finite(loss.link(y), "link", y, raw)
        else:
            gradient, hessian = float(loss.gradient(y, raw)), float(loss.hessian(y, raw))
            label = raw - gradient / hessian if hessian > 0.0 else math.nan
            value = float(loss.value(y, raw)) if math.isfinite(label) else math.nan
            if not (math.isfinite(value) and hessian < math.inf):
                self._reject(y, raw)
            self._weight += w
            self._hessian += w * hessian
            self._loss_weight = KEPT * self._loss_weight + w
            self._loss = KEPT * self._loss + w * value
            if self._hessian > 0.0:  # the least weights make it 0
                share = hessian * self._weight / self._hessian
        if self._update is not None:
            self._update(y, raw, rows or 0.0)
        return label, w * min(max(share, LIGHTEST), HEAVIEST)

    def _reject(self, y: float, raw: float) -> NoReturn:
        """Raise ValueError: the loss has no step at a label and a raw prediction."""
        gradient = _finite(self.loss.gradient(y, raw), "gradient", y, raw)
        hessian = _finite(self.loss.hessian(y, raw), "hessian", y, raw)
        if not hessian > 0.0:
            raise ValueError(
                f"hessian = {hessian:g} at y = {y:g}, raw = {raw:g}: it must be above 0; return an "
                "upper bound of the second derivative instead"
            )
        _finite(raw - gradient / hessian, "raw - gradient / hessian", y, raw)
        _finite(self.loss.value(y, raw), "value", y, raw)
        raise ValueError(f"the loss is another one each time it is computed at y = {y:g}")


def _finite(value: Any, name: str, y: float, raw: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(
            f"{name} = {number:g} at y = {y:g}, raw = {raw:g}: the loss must be finite there; hold "
            "raw within a range, or drop the row"
        )
    return number


def _copied(loss: Any) -> Any:
    """Return an independent copy of a named loss; one of the caller's own is shared."""
    return loss.copy() if isinstance(loss, NamedLoss) else loss


def _checked_loss(loss: Any) -> Any:
    if isinstance(loss, str):
        if loss not in LOSSES:
            known = ", ".join(map(repr, LOSSES))
            raise ValueError(f"loss = {validation.shown(loss)}: one of {known} is expected")
        return LOSSES[loss]()
    if isinstance(loss, NamedLoss):
        return loss.copy()
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss = {validation.shown(loss)}: a name, or an object with the methods value, "
            "gradient, hessian, link and inverse is expected"
        )
    return loss

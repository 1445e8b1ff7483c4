"""The error-correction layer: a model's prediction, levels and a transfer model, stacked.

`predict_layer` sets a CorrectedPrediction, which has all that is needed when the label arrives.
`issued_prediction` is what callers get: it is limited to the range of y that was seen. While few
labels are known, the last label has a share in it: models and weights need hundreds of rows, but a
few rows show whether y hardly changes from one to the next.

`score_layer` takes the CorrectedPrediction of a label, however late. `update_layer` takes every
label as soon as it is known, and updates levels and known pairs, whether or not its row was
predicted.
"""

from sapwood.corrector._stacking cimport (
    StackRules, stacked, score_stack, solve_stack, start_stack,
)
from sapwood.corrector._evidence cimport LATE, Evidence, is_due, slower, worth
from sapwood.corrector._levels cimport (
    LEVELS, Distances, Levels, update_levels, score_levels, predict_levels, solve_levels,
    start_levels,
)
from sapwood.corrector._range cimport Range, update_range, held_within, start_range
from sapwood.corrector._transfer cimport (
    KNOWN, TERMS, Transfer, update_transfer, score_transfer, predict_transfer, solve_transfer,
    start_transfer,
)

cdef enum:
    COLD_LABELS = 200               # of the cold start; in its second half the share shrinks to 0
    FIRST_LABELS = 8                # without a share of the last label
    LAST_PRIOR = 8                  # labels, by which its slope is shrunk towards 0
    CANDIDATES = LEVELS + 1         # the levels and the transfer model
    STACK_DOUBLES = 20                      # stack_doubles(CANDIDATES)


cdef struct LayerRules:
    StackRules stack
    double decay       # what is left a row later of the sums of slopes and of the transfer model
    double precision   # one over the squared deviation of the transfer model's coefficients
    double margin      # how far beyond the range of y it may go, as a share of that


cdef struct LayerState:
    Levels levels      # the rates come first, and are set once
    Evidence evidence
    Range range        # of y
    Transfer transfer
    double stack[STACK_DOUBLES]


cdef struct CorrectedPrediction:
    double known               # labels that were known
    double model               # what the model predicted
    Distances distances
    double terms[TERMS]
    double candidates[CANDIDATES]
    double prediction          # the weighted combination


cdef inline void start_layer(LayerState* layer, const LayerRules* rules, double y) noexcept nogil:
    """Take the first y of all."""
    layer.evidence = Evidence(0.0, 0.0, 0.0)
    start_range(&layer.range, y)
    start_levels(&layer.levels, y)
    start_transfer(&layer.transfer, y)
    start_stack(layer.stack, CANDIDATES, &rules.stack)


cdef inline void predict_layer(
    const LayerState* layer, const LayerRules* rules, double model, double known,
    CorrectedPrediction* corrected,
) noexcept nogil:
    """Correct a model's prediction, when so many labels are known."""
    cdef double low = layer.range.low, high = layer.range.high
    cdef double margin = rules.margin * (high - low)
    corrected.known, corrected.model = known, model
    predict_levels(&layer.levels, model, &corrected.distances, corrected.candidates)
    corrected.candidates[LEVELS] = predict_transfer(
        &layer.transfer, model, low - margin, high + margin, corrected.terms
    )
    corrected.prediction = stacked(layer.stack, CANDIDATES, model, corrected.candidates)


cdef inline double last_share(const LayerState* layer) noexcept nogil:
    """The share of the last label in predictions, 0 after the cold start.

    It is 0 up to a slope of .5 of y - p on y1 - p, as in rows without order, and 1 from .8 on. From
    .5 on the last label y1 has smaller squared errors than the predictions p of the model.
    """
    cdef double scored = layer.evidence.scored, labels, share
    if scored >= <double>COLD_LABELS or not layer.transfer.products[0] > 0.0:
        return 0.0
    labels = scored * (<double>LATE / (<double>LATE + layer.evidence.lateness))
    if labels <= <double>FIRST_LABELS:
        return 0.0
    share = layer.transfer.joint[0] / layer.transfer.products[0] * labels
    share = (share / (labels + <double>LAST_PRIOR) - 0.5) / 0.3
    share = share if share > 0.0 else 0.0
    share = share if share < 1.0 else 1.0
    if scored > 0.5 * <double>COLD_LABELS:
        share *= 2.0 - scored / (0.5 * <double>COLD_LABELS)
    return share


cdef inline double issued_prediction(
    const LayerState* layer, const CorrectedPrediction* corrected
) noexcept nogil:
    """The prediction for callers: with a share of the last label at a cold start, and limited to
    the range of y, see `_range.pxd`.

    Nothing that is learned depends on it.
    """
    cdef double share = last_share(layer), prediction = corrected.prediction
    if share > 0.0:
        prediction += share * ((corrected.terms[0] + corrected.model) - prediction)
    return held_within(&layer.range, prediction)


cdef inline void score_layer(
    LayerState* layer, const LayerRules* rules, const CorrectedPrediction* corrected, double y,
    double w, double known,
) noexcept nogil:
    """Learn the label of a corrected prediction, when so many others are known."""
    cdef double share = worth(&layer.evidence, known - corrected.known)
    cdef double decay = slower(rules.decay, share)
    score_levels(&layer.levels, &corrected.distances, y, decay, share * w)
    score_transfer(
        &layer.transfer, corrected.terms, corrected.model, corrected.candidates[LEVELS], y, decay,
        share * w,
    )
    score_stack(
        layer.stack, CANDIDATES, &rules.stack, corrected.model, corrected.candidates,
        corrected.prediction, y, w, share,
    )
    if is_due(&layer.evidence):
        solve_layer(layer, rules)


cdef inline void update_layer(LayerState* layer, double model, double y, double w) noexcept nogil:
    """Learn a label, for whose row the model predicts `model` now."""
    update_levels(&layer.levels, model, y, w)
    update_transfer(&layer.transfer, model, y)
    update_range(&layer.range, y)


cdef void solve_layer(LayerState* layer, const LayerRules* rules) noexcept nogil
cdef const LayerRules* layer_rules() noexcept nogil

"""The last layer of a model: its prediction, levels and a transfer model, blended.

What is returned of it is `issued`, which holds it to the range of y that was seen. While few labels
are known, the last of them has a share in it: models and weights need hundreds of rows, but a few
rows show whether y hardly changes from one to the next.

A prediction is `say`, which leaves in a CorrectedPrediction all that is needed when the label
arrives: `judge` takes that, however late. `follow` is for every label, as soon as it is there; the
levels and the pairs that are known go on by it, whether or not its row was ever predicted.
"""

from sapwood.corrector._blend cimport (
    BlendRules, blended, judge_blend, settle_blend, start_blend,
)
from sapwood.corrector._evidence cimport LATE, Evidence, is_due, slower, worth
from sapwood.corrector._levels cimport (
    LEVELS, Distances, Levels, follow_levels, judge_levels, say_levels, settle_levels,
    start_levels,
)
from sapwood.corrector._range cimport Range, follow_range, held_within, start_range
from sapwood.corrector._transfer cimport (
    KNOWN, TERMS, Transfer, follow_transfer, judge_transfer, say_transfer, settle_transfer,
    start_transfer,
)

cdef enum:
    COLD_LABELS = 200               # of the cold start; in its second half the share shrinks to 0
    FIRST_LABELS = 8                # without a share of the last label
    LAST_PRIOR = 8                  # labels, by which its slope is shrunk towards 0
    CANDIDATES = LEVELS + 1         # the levels and the transfer model
    BLEND = 20                      # blend_doubles(CANDIDATES)


cdef struct LayerRules:
    BlendRules blend
    double fade        # what is left a row later of the sums of slopes and of the transfer model
    double precision   # one over the squared deviation of the transfer model's coefficients
    double margin      # how far beyond the range of y it may go, as a share of that


cdef struct LayerState:
    Levels levels      # the rates come first, and are set once
    Evidence evidence
    Range range        # of y
    Transfer transfer
    double blend[BLEND]


cdef struct CorrectedPrediction:
    double known               # labels that were known
    double model               # what the model predicted
    Distances distances
    double terms[TERMS]
    double candidates[CANDIDATES]
    double prediction          # what was said


cdef inline void start_layer(LayerState* layer, const LayerRules* rules, double y) noexcept nogil:
    """Take the first y of all."""
    layer.evidence = Evidence(0.0, 0.0, 0.0)
    start_range(&layer.range, y)
    start_levels(&layer.levels, y)
    start_transfer(&layer.transfer, y)
    start_blend(layer.blend, CANDIDATES, &rules.blend)


cdef inline void say(
    const LayerState* layer, const LayerRules* rules, double model, double known,
    CorrectedPrediction* saying,
) noexcept nogil:
    """Say what comes of a model's prediction, when so many labels are known."""
    cdef double low = layer.range.low, high = layer.range.high
    cdef double margin = rules.margin * (high - low)
    saying.known, saying.model = known, model
    say_levels(&layer.levels, model, &saying.distances, saying.candidates)
    saying.candidates[LEVELS] = say_transfer(
        &layer.transfer, model, low - margin, high + margin, saying.terms
    )
    saying.prediction = blended(layer.blend, CANDIDATES, model, saying.candidates)


cdef inline double last_share(const LayerState* layer) noexcept nogil:
    """The share of the last label in predictions, 0 after the cold start.

    It is 0 up to a slope of .5 of y - p on y1 - p, as in rows without order, and 1 from .8 on. From
    .5 on the last label y1 has smaller squared errors than the predictions p of the model.
    """
    cdef double judged = layer.evidence.judged, labels, share
    if judged >= <double>COLD_LABELS or not layer.transfer.products[0] > 0.0:
        return 0.0
    labels = judged * (<double>LATE / (<double>LATE + layer.evidence.lateness))
    if labels <= <double>FIRST_LABELS:
        return 0.0
    share = layer.transfer.joint[0] / layer.transfer.products[0] * labels
    share = (share / (labels + <double>LAST_PRIOR) - 0.5) / 0.3
    share = share if share > 0.0 else 0.0
    share = share if share < 1.0 else 1.0
    if judged > 0.5 * <double>COLD_LABELS:
        share *= 2.0 - judged / (0.5 * <double>COLD_LABELS)
    return share


cdef inline double issued(
    const LayerState* layer, const CorrectedPrediction* saying
) noexcept nogil:
    """What is returned of a prediction: with a share of the last label at a cold start, and held to
    the range of y, see `_range.pxd`.

    Nothing that is learned depends on it.
    """
    cdef double share = last_share(layer), prediction = saying.prediction
    if share > 0.0:
        prediction += share * ((saying.terms[0] + saying.model) - prediction)
    return held_within(&layer.range, prediction)


cdef inline void judge(
    LayerState* layer, const LayerRules* rules, const CorrectedPrediction* saying, double y,
    double w, double known,
) noexcept nogil:
    """Take the label of what was said, when so many others are known."""
    cdef double share = worth(&layer.evidence, known - saying.known)
    cdef double fade = slower(rules.fade, share)
    judge_levels(&layer.levels, &saying.distances, y, fade, share * w)
    judge_transfer(
        &layer.transfer, saying.terms, saying.model, saying.candidates[LEVELS], y, fade, share * w
    )
    judge_blend(
        layer.blend, CANDIDATES, &rules.blend, saying.model, saying.candidates,
        saying.prediction, y, w, share,
    )
    if is_due(&layer.evidence):
        settle(layer, rules)


cdef inline void follow(LayerState* layer, double model, double y, double w) noexcept nogil:
    """Go on by a label, for whose row the model predicts this now."""
    follow_levels(&layer.levels, model, y, w)
    follow_transfer(&layer.transfer, model, y)
    follow_range(&layer.range, y)


cdef void settle(LayerState* layer, const LayerRules* rules) noexcept nogil
cdef const LayerRules* layer_rules() noexcept nogil

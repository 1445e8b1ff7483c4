"""The last layer of a model: its prediction, levels and a transfer model, blended.

What is returned of it is `issued`, which holds it to the range of y that was seen.

A prediction is `say`, which leaves in a CorrectedPrediction all that is needed when the label
arrives: `judge` takes that, however late. `follow` is for every label, as soon as it is there; the
levels and the pairs that are known go on by it, whether or not its row was ever predicted.
"""

from sapwood.corrector._blend cimport (
    BlendRules, blended, judge_blend, settle_blend, start_blend,
)
from sapwood.corrector._evidence cimport Evidence, is_due, slower, worth
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


cdef inline double issued(const LayerState* layer, double prediction) noexcept nogil:
    """What is returned of a prediction: it is held to the range of y, see `_range.pxd`.

    Nothing that is learned depends on it. So it is never further from a y within the range.
    """
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

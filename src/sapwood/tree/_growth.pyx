"""Decisions about a leaf that is due: it is reset, reviewed or split, or it waits.

`sapwood.tree.growth` defines the rules. Memory is allocated before any change, or the step can be
repeated: after a failure the leaf stays due, and is decided when rows are learned next.
"""

from libc.math cimport INFINITY
from libc.string cimport memset

from sapwood.tree._bounds cimport ABSOLUTE, weight_needed
from sapwood.tree._column_tables cimport clear_watch
from sapwood.tree._cuts cimport LINE, MEASURES, STEP, TARGET
from sapwood.tree._experts cimport FADED_SHARE
from sapwood.tree._memory cimport admits_split, rank_in_time
from sapwood.tree._prediction cimport leaf_rows_of, part_of
from sapwood.tree._records cimport EXPERTS, GrowthRules, LeafRecord, TargetPart
from sapwood.tree._review cimport review_leaf
from sapwood.tree._search cimport BestCut, find_best_cuts, known_targets, unit_of
from sapwood.tree._split cimport split_leaf
from sapwood.tree._leaves cimport Watchers
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._trial cimport continue_trial, renew_trial

# The values of `split_on`, as in SPLIT_ON of sapwood/tree/growth.py.
cdef enum:
    BEST = 0
    RESIDUAL = 1
    OF_TARGET = 2

# A leaf is reset if its recent errors are so many times smaller than over all of its rows.
cdef double OUTDATED = 1e6
cdef double OUTDATED_ROWS = 200.0


cdef struct SplitDecision:
    bint earned       # whether the cut is to be made
    int measure       # by which it was judged
    double needed     # the weight at which it will be earned, if merits stay as they are
    BestCut cut


cdef int decide(TreeTables tables, Py_ssize_t leaf) except -1 nogil:
    """Decide on a leaf whose weight has reached its `due`, and do what was decided."""
    tables.undecided = leaf
    if tables.leaves[leaf].weight >= tables.leaves[leaf].due:
        if is_outdated(tables, leaf):
            reset_leaf(tables, leaf)
            tables.undecided = -1
            return 0
        attempt(tables, leaf)
    rank_in_time(tables)
    tables.undecided = -1
    return 0


cdef bint is_outdated(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Whether the errors that a leaf has now are nothing compared with those that it once had, in
    all targets of which it has seen some y."""
    cdef const TargetPart* own
    cdef Py_ssize_t target
    cdef double rows
    cdef bint any_known = False
    for target in range(tables.targets):
        own = part_of(tables, tables.targets, leaf, target)
        rows = leaf_rows_of(tables, tables.targets, leaf, target)
        if rows == 0.0:
            continue
        any_known = True
        if rows < OUTDATED_ROWS or not (
            FADED_SHARE * least_error(tables, own, False) * rows * OUTDATED < own.residual_m2
        ):
            return False
    return any_known


cdef inline double least_error(
    TreeTables tables, const TargetPart* own, bint of_all
) noexcept nogil:
    """The least exponentially weighted error of the experts that are used, or of all of them."""
    cdef double least = own.errors[0] if tables.averaging or of_all else INFINITY
    cdef Py_ssize_t expert
    for expert in range(1, EXPERTS if tables.linear else 1):
        least = min(least, own.errors[expert])
    return least


cdef double error_of(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """The mean over targets of the least exponentially weighted error of a leaf, in their units."""
    cdef double total = 0.0
    cdef Py_ssize_t target
    for target in range(tables.targets):
        total += unit_of(tables, target) * least_error(
            tables, part_of(tables, tables.targets, leaf, target), True
        )
    return total / known_targets(tables)


cdef double variance_of(TreeTables tables, Py_ssize_t leaf, bint of_residual) noexcept nogil:
    """The mean over targets of their variance in a leaf, or that of residuals, as merits are."""
    cdef const TargetPart* own
    cdef double total = 0.0
    cdef Py_ssize_t target
    for target in range(tables.targets):
        own = part_of(tables, tables.targets, leaf, target)
        total += unit_of(tables, target) * (own.residual_m2 if of_residual else own.target_m2)
    return total / (known_targets(tables) * tables.leaves[leaf].weight)


cdef int reset_leaf(TreeTables tables, Py_ssize_t leaf) except -1 nogil:
    """Reset the statistics of a leaf."""
    if tables.slots == 0:
        with gil:
            tables.put_watchers(leaf, Watchers(tables.fresh_observers()))
    memset(tables.watches[leaf], 0, tables.watch_table.doubles * sizeof(double))
    clear_watch(tables.columns, tables.watches[leaf])
    tables.restart_statistics(leaf, tables.growth.first_review)
    return 0


cdef int attempt(TreeTables tables, Py_ssize_t leaf) except -1 nogil:
    """Review a leaf and split it, as far as that is due, and set when it will be due again."""
    cdef LeafRecord* record = tables.leaves + leaf
    cdef const GrowthRules* rules = &tables.growth
    cdef BestCut cuts[MEASURES]
    cdef SplitDecision decision
    cdef double target_variance, residual_variance
    cdef bint is_admitted
    cdef double needed = INFINITY
    if record.weight >= record.review:
        review_leaf(tables, leaf)
        record.review = 2.0 * record.weight
        if tables.trial.leaf == leaf:
            renew_trial(tables)
    if record.weight < rules.grace_period:
        record.due = min(record.review, rules.grace_period)
        return 0
    if tables.topology.nodes[record.node].depth >= rules.max_depth:
        record.due = record.review
        return 0
    find_best_cuts(tables, leaf, rules.min_share, cuts)
    target_variance = variance_of(tables, leaf, False)
    residual_variance = variance_of(tables, leaf, True)
    if residual_variance <= rules.negligible * target_variance:
        decision = SplitDecision(False, STEP, INFINITY, cuts[STEP])
    else:
        decision = chosen(rules, cuts, record.weight, target_variance, residual_variance)
    if not decision.earned:
        needed = decision.needed
        decision.measure = STEP if tables.linear else TARGET
        continue_trial(tables, leaf, cuts[decision.measure].merit, &decision.cut, &decision.earned)
    if not decision.earned:
        record.due = min(max(record.weight + rules.grace_period, needed), 2.0 * record.weight)
        if tables.trial.leaf == leaf:
            record.due = min(record.due, tables.trial.ends)
        return 0
    admits_split(tables, leaf, &is_admitted)
    if is_admitted:
        split_leaf(tables, leaf, &decision.cut, decision.measure)
    else:
        record.due = 2.0 * record.weight
    return 0


cdef SplitDecision chosen(
    const GrowthRules* rules, const BestCut* cuts, double weight, double target_variance,
    double residual_variance,
) noexcept nogil:
    """Take of the best cuts, of y and of its residual by step or line, that of the least error.

    It has to explain more than noise would, and to be better than the best cut of any other
    feature by the bound, unless the two are so near that it does not matter. What two features do
    together shows in the residual neither as a step nor as a bend: where a cut sets parts of y far
    apart, or the residual has long shown nothing, y decides.
    """
    cdef int of_residual = LINE if cuts[LINE].merit > cuts[STEP].merit else STEP
    cdef const BestCut* target = cuts + TARGET
    cdef const BestCut* residual = cuts + of_residual
    cdef double target_left = target_variance - target.merit
    cdef double residual_left = residual_variance - residual.merit
    cdef SplitDecision decision
    if rules.split_on == OF_TARGET:
        return decision_on(rules, target, weight, target_left, TARGET)
    if rules.split_on == RESIDUAL:
        return decision_on(rules, residual, weight, residual_left, of_residual)
    if target_left <= residual_left or (
        target_left <= rules.most_left * residual_left
        and is_apart(rules, target.merit / target_variance, residual.merit / residual_variance)
    ):
        return decision_on(rules, target, weight, target_left, TARGET)
    decision = decision_on(rules, residual, weight, residual_left, of_residual)
    if not decision.earned and weight >= rules.patience * rules.grace_period:
        return decision_on(rules, target, weight, target_left, TARGET)
    return decision


cdef inline bint is_apart(
    const GrowthRules* rules, double target_share, double residual_share
) noexcept nogil:
    """Whether a cut clearly separates y into two groups, and no cut does so with the residual."""
    return target_share >= rules.apart and target_share >= rules.clearer * residual_share


cdef SplitDecision decision_on(
    const GrowthRules* rules, const BestCut* cut, double weight, double left_over, int measure
) noexcept nogil:
    """Whether a cut was earned that leaves so much variance."""
    cdef SplitDecision decision = SplitDecision(False, measure, INFINITY, cut[0])
    cdef double enough = rules.least_evidence * max(left_over, 0.0)
    cdef double needed, lead
    if cut.feature < 0:
        return decision
    if weight * cut.merit <= enough:
        decision.needed = rules.optimism * enough / cut.merit
        return decision
    lead = cut.merit - cut.second if rules.bound == ABSOLUTE else 1.0 - cut.second / cut.merit
    needed = weight_needed(rules, max(lead, rules.tau))
    decision.earned = weight > needed
    decision.needed = rules.optimism * needed
    return decision

"""The steps of the detection of changes of units; _units.pxd has the rules.

Trees with slots detect changes of features; those with one target and an error-correction layer
also detect changes of y. Nothing here allocates memory, or can fail.
"""

from libc.math cimport fabs

from sapwood.corrector._layer cimport start_layer
from sapwood.tree._columns cimport error_of
from sapwood.tree._rescaling cimport (
    fits_column, fits_target, move_units, rescale_column, rescale_target,
)
from sapwood.tree._units cimport (
    AT_REST, BEYOND, BOTH, CALM, CLOSE, COLLECTED, COLLECTING, ERRING, FIRST_PATIENCE,
    JOINING, KINDS, MOST_CHANGES, NEXT_TO, RUN, SCALE, SHIFT, STILL, UNIT_MEMORY, WEIGHED, WEIGHING,
    ColumnUnits, UnitChange, UnitDetection, collect, find_map, is_better, is_beyond, is_cleared,
    is_close, is_next_to, is_proved, is_measured, largest_value, release, sample_value, suspect,
)

# The share of the error that a scale and a shift have to leave, to be preferred to either alone.
cdef double MORE = 0.9


cdef inline bint is_number(TreeTables tables, Py_ssize_t column) noexcept nogil:
    """Whether a column is a feature that is a number, or y, which is 0, if its units matter."""
    if column == 0:
        return watches_target(tables)
    return not (tables.column.is_category[column - 1] or tables.column.places[column - 1] >= 0)


cdef inline bint watches_target(TreeTables tables) noexcept nogil:
    """Whether changes of the units of y are followed."""
    return tables.tracking and tables.targets == 1


cdef void watch_units(
    TreeTables tables, const double* row, const double* y, const TargetPrediction* predictions,
    bint is_unusual, bint has_large_error, bint is_sampled,
) noexcept nogil:
    """Update the detection of changes of units with a row that was learned.

    Parameters
    ----------
    row, y
        The row, with the y of each target.
    predictions
        Of the tree, before the row was learned.
    is_unusual, has_large_error, is_sampled
        The reason of the call: the row is unusual, the error of its prediction was large, or it is
        a sample; otherwise, rows before it are the reason.
    """
    cdef UnitDetection* detection = tables.units.detection
    cdef bint found = False, has_target = watches_target(tables)
    cdef double own = y[0] if has_target else 0.0
    if detection.phase != AT_REST:
        go_on(tables, row, own)
        return
    if has_large_error and has_target:
        found = finds_stillness(tables, own)
        is_unusual |= is_beyond(tables.column.units, own)
    if is_unusual or detection.alert > 0.0:
        found |= find_suspects(tables, row, own)
    if is_sampled and not found:
        sample_error(detection, error_of(tables, y, predictions))
        found = sample_all(tables, row, own)
    if found:
        begin(tables, own)


cdef bint find_suspects(TreeTables tables, const double* row, double y) noexcept nogil:
    """Count unusual values of columns; return whether a column has become suspected."""
    cdef Py_ssize_t column
    cdef ColumnUnits* units
    cdef double x
    cdef bint found = False
    tables.units.detection.alert = 0.0
    for column in range(tables.features + 1):
        units = tables.column.units + column
        x = row[column - 1] if column else y
        if not is_number(tables, column) or units.state != CALM:
            continue
        if x == x:
            units.run = units.run + 1.0 if is_beyond(units, x) else 0.0
            units.still = units.still + 1.0 if units.still > 0.0 and is_next_to(units, x) else 0.0
        if units.run + units.still > 0.0:
            tables.units.detection.alert = 1.0
        if tables.stream.rows >= units.wait and (units.run >= RUN or units.still >= STILL):
            suspect(units, BEYOND if units.run >= RUN else CLOSE)
            found = True
    return found


cdef bint finds_stillness(TreeTables tables, double y) noexcept nogil:
    """Count large errors; return whether y has hardly moved meanwhile."""
    cdef UnitDetection* detection = tables.units.detection
    cdef ColumnUnits* units = tables.column.units
    if detection.erred != tables.stream.rows - 1.0:
        detection.run = detection.steps = 0.0
    if detection.run > 0.0:
        detection.steps += fabs(y - detection.level)
    detection.erred, detection.level = tables.stream.rows, y
    detection.run += 1.0
    if detection.run < ERRING:
        return False
    detection.run -= 1.0
    if (
        is_measured(units)
        and tables.stream.rows >= units.wait
        and 0.0 < NEXT_TO * detection.steps < detection.run * units.step
    ):
        suspect(units, CLOSE)
        return True
    detection.run = detection.steps = 0.0
    return False


cdef inline void sample_error(UnitDetection* detection, double error) noexcept nogil:
    """Add an error of the tree, if there is one."""
    if error != error:
        return
    detection.errors += 1.0 if detection.errors < UNIT_MEMORY else 0.0
    detection.error += (error * error - detection.error) / detection.errors


cdef bint sample_all(TreeTables tables, const double* row, double y) noexcept nogil:
    """Add a sample to all columns; return whether one of them hardly moves any more."""
    cdef Py_ssize_t column
    cdef ColumnUnits* units
    cdef double x
    cdef bint found = False
    # The error-correction layer knows the y before this one.
    if watches_target(tables) and not is_beyond(tables.column.units, y):
        sample_value(tables.column.units, y, fabs(y - tables.layer.transfer.known[1]))
    for column in range(1, tables.features + 1):
        units, x = tables.column.units + column, row[column - 1]
        if not fabs(x) <= largest_value() or not is_number(tables, column):
            continue
        if is_beyond(units, x):
            units.run = units.run if units.run > 0.0 else 1.0
            tables.units.detection.alert = 1.0
            continue
        sample_value(units, x, fabs(x - units.last))
        if tables.stream.rows < units.wait or not is_measured(units):
            continue
        if is_close(units):
            suspect(units, CLOSE)
            found = True
        else:
            # The next rows show whether it hardly moves.
            units.still = units.still if units.still > 0.0 else 1.0
            tables.units.detection.alert = 1.0
    return found


cdef void begin(TreeTables tables, double y) noexcept nogil:
    """Begin the detection."""
    cdef UnitDetection* detection = tables.units.detection
    cdef Py_ssize_t kind
    detection.phase, detection.alert, detection.level = COLLECTING, 1.0, y
    detection.rows = detection.run = detection.steps = detection.as_is = detection.in_force = 0.0
    for kind in range(KINDS):
        detection.weighed[kind] = detection.gain[kind] = detection.square[kind] = 0.0
    hold(tables)


cdef void hold(TreeTables tables) noexcept nogil:
    """Treat values of suspected columns beyond their ranges as missing."""
    cdef Py_ssize_t column
    tables.units.hiding = False
    for column in range(1, tables.features + 1):
        tables.units.hiding |= tables.column.units[column].state == BEYOND
    tables.units.rerouted = True


cdef void go_on(TreeTables tables, const double* row, double y) noexcept nogil:
    """Add a row to the detection, and decide after enough rows."""
    cdef UnitDetection* detection = tables.units.detection
    cdef Py_ssize_t column, suspects = 0
    cdef ColumnUnits* units
    cdef double x
    detection.rows += 1.0
    detection.level += 0.4 * (y - detection.level)
    for column in range(tables.features + 1):
        units = tables.column.units + column
        if units.state == CALM:
            continue
        x = row[column - 1] if column else y
        if fabs(x) <= largest_value():
            collect(units, x)
        if is_cleared(units) or (
            detection.rows == COLLECTED and not may_have_changed(units)
        ):
            release(units, tables.stream.rows)
            tables.units.rerouted = True
        suspects += units.state != CALM
    if detection.rows <= JOINING and find_suspects(tables, row, y):
        suspects += 1
        tables.units.rerouted = True
    detection.alert = 1.0
    if suspects and detection.rows == COLLECTED:
        detection.phase = WEIGHING
    if suspects == 0 or detection.rows == COLLECTED + WEIGHED:
        end(tables)
    elif tables.units.rerouted:
        hold(tables)


cdef bint may_have_changed(const ColumnUnits* units) noexcept nogil:
    """Whether there is a map from old to new values of a column."""
    cdef double scale, shift
    cdef int kind
    for kind in range(KINDS):
        if find_map(units, kind, &scale, &shift):
            return True
    return False


cdef void end(TreeTables tables) noexcept nogil:
    """Apply the accepted change, if there is one, and end the detection."""
    cdef UnitDetection* detection = tables.units.detection
    cdef double scale = 1.0, shift
    cdef int best = SCALE if detection.weighed[SCALE] <= detection.weighed[SHIFT] else SHIFT
    cdef Py_ssize_t column
    if detection.weighed[BOTH] < MORE * detection.weighed[best]:
        best = BOTH
    if tables.column.units[0].state != CALM and not find_map(
        tables.column.units, best, &scale, &shift
    ):
        scale = 1.0
    if (
        detection.rows == COLLECTED + WEIGHED
        and is_proved(detection, best, scale)
        and all_fit(tables, best)
    ):
        follow_all(tables, best)
    elif detection.rows == COLLECTED + WEIGHED and tables.column.units[0].state != CALM:
        catch_up(tables)
    for column in range(tables.features + 1):
        if tables.column.units[column].state != CALM:
            release(tables.column.units + column, tables.stream.rows)
    detection.phase, detection.alert, detection.rows, detection.level = AT_REST, 0.0, 0.0, 0.0
    hold(tables)


cdef void catch_up(TreeTables tables) noexcept nogil:
    """Shift the tree to the new y, which it did not learn, if that is clearly better."""
    cdef double scale, shift, low = tables.stream.low, high = tables.stream.high
    if (
        is_better(tables.units.detection, SHIFT)
        and find_map(tables.column.units, SHIFT, &scale, &shift)
        and fits_target(tables, scale, shift)
    ):
        follow_target(tables, scale, shift)
        tables.stream.low = low if low < tables.stream.low else tables.stream.low
        tables.stream.high = high if high > tables.stream.high else tables.stream.high


cdef bint all_fit(TreeTables tables, int kind) noexcept nogil:
    """Whether all numbers stay within bounds if the change is applied to all suspected columns."""
    cdef Py_ssize_t column
    cdef double scale, shift
    cdef const ColumnUnits* units
    for column in range(tables.features + 1):
        units = tables.column.units + column
        if units.state == CALM or not find_map(units, kind, &scale, &shift):
            continue
        if not (
            fabs(scale * units.low) + fabs(shift) < largest_value()
            and fabs(scale * units.high) + fabs(shift) < largest_value()
        ):
            return False
        if column == 0 and not fits_target(tables, scale, shift):
            return False
        if column > 0 and not fits_column(tables, column - 1, scale, shift):
            return False
    return True


cdef void follow_all(TreeTables tables, int kind) noexcept nogil:
    """Convert the tree to the new units of all suspected columns."""
    cdef Py_ssize_t column
    cdef double scale, shift
    for column in range(tables.features + 1):
        if tables.column.units[column].state == CALM or not find_map(
            tables.column.units + column, kind, &scale, &shift
        ):
            continue
        if column > 0:
            rescale_column(tables, column - 1, scale, shift)
        else:
            follow_target(tables, scale, shift)
            move_units(tables.column.units, scale, shift)
        tables.column.units[column].last = tables.column.units[column].new_mean
        tables.column.units[column].wait = tables.stream.rows + FIRST_PATIENCE
        remember(tables, UnitChange(tables.stream.rows, column - 1, scale, shift))


cdef void follow_target(TreeTables tables, double scale, double shift) noexcept nogil:
    """Convert y to other units, and reset the error-correction layer."""
    cdef const ColumnUnits* units = tables.column.units
    tables.stream.low = units.low if units.low < tables.stream.first else tables.stream.first
    tables.stream.high = units.high if units.high > tables.stream.first else tables.stream.first
    tables.stream.usual = tables.units.detection.error
    tables.units.detection.error *= scale * scale
    rescale_target(tables, scale, shift)
    start_layer(tables.layer, tables.layer_rules, tables.units.detection.level)


cdef void remember(TreeTables tables, UnitChange change) noexcept nogil:
    """Remember a change; the oldest is forgotten if there are too many."""
    cdef Py_ssize_t place
    for place in range(MOST_CHANGES):
        if tables.units.changes[place].row == 0.0:
            tables.units.changes[place] = change
            return
    for place in range(MOST_CHANGES - 1):
        tables.units.changes[place] = tables.units.changes[place + 1]
    tables.units.changes[MOST_CHANGES - 1] = change

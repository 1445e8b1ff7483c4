"""Candidates for a change of units, and their evidence; see _units.pxd."""

from libc.math cimport fabs, floor, sqrt

# A power of ten replaces a ratio of deviations within this factor, the precision of so few rows.
cdef double AS_LIKELY = 4.0 / 3.0
# Larger ratios are no changes of units.
cdef double LARGEST_RATIO = 1e30
# Evidence for a change: the share of the squared error of the unchanged tree, the number of
# standard errors, the factor of the usual squared error, and the factor of the error of issued
# predictions.
cdef double MOST_SHARE = 0.5
cdef double SURE = 2.5
cdef double MOST_ERROR = 4.0
cdef double MOST_OF_FORCE = 1.1


cdef double power_of_ten(double ratio) noexcept nogil:
    """The power of ten that is next to a ratio, on the scale of logarithms."""
    cdef double power = 1.0
    while ratio >= power * 3.1622776601683795:
        power *= 10.0
    if power > 1.0:
        return power
    while ratio * power < 0.31622776601683794:
        power *= 10.0
    return 1.0 / power


cdef double roundest(double value, double uncertainty) noexcept nogil:
    """The roundest number within an uncertainty of a value."""
    cdef double step
    if value == 0.0 or not 0.0 < uncertainty < LARGEST_RATIO or uncertainty < 1e-30:
        return value
    if fabs(value) <= uncertainty:
        return 0.0
    # Half of the largest power of ten that is not above twice the uncertainty, or that itself.
    step = power_of_ten(uncertainty)
    step = step if step <= 2.0 * uncertainty else step / 10.0
    if 5.0 * step <= 2.0 * uncertainty:
        step *= 5.0
    if not fabs(value) < step * 1e15:
        return value
    if step >= 1.0:
        return floor(value / step + 0.5) * step
    return floor(value / step + 0.5) / (1.0 / step)


cdef bint find_map(
    const ColumnUnits* units, int kind, double* scale, double* shift
) noexcept nogil:
    """Find the map from old to new values for a kind of change; return whether there is one."""
    cdef double before, now, ratio, power
    if not (units.seen >= COLLECTED / 2 and units.variance > 0.0 and units.new_m2 > 0.0):
        return False
    before, now = sqrt(units.variance), sqrt(units.new_m2 / units.seen)
    ratio = units.new_mean / units.mean if kind == SCALE and units.mean != 0.0 else now / before
    if kind == SHIFT:
        ratio = 1.0
    if not 1.0 / LARGEST_RATIO < ratio < LARGEST_RATIO:
        return False
    power = power_of_ten(ratio)
    scale[0] = power if power / AS_LIKELY < ratio < power * AS_LIKELY else ratio
    shift[0] = 0.0
    if kind != SCALE:
        shift[0] = roundest(units.new_mean - scale[0] * units.mean, now / sqrt(units.seen))
    return scale[0] != 1.0 or shift[0] != 0.0


cdef bint is_better(const UnitDetection* detection, int kind) noexcept nogil:
    """Whether rows were predicted clearly better in other units."""
    return (
        detection.weighed[kind] < MOST_SHARE * detection.as_is
        and detection.gain[kind] > SURE * sqrt(detection.square[kind])
    )


cdef bint is_proved(const UnitDetection* detection, int kind, double scale_of_y) noexcept nogil:
    """Whether the evidence suffices for a change of units."""
    cdef double error = detection.weighed[kind]
    cdef double usual = detection.error * scale_of_y * scale_of_y * WEIGHED
    return (
        is_better(detection, kind)
        and error <= MOST_ERROR * usual
        and error <= MOST_OF_FORCE * detection.in_force
    )


def nearest_power_of_ten(double ratio):
    """Return the power of ten next to a ratio."""
    return power_of_ten(ratio)


def roundest_number(double value, double uncertainty):
    """Return the roundest number within an uncertainty of a value."""
    return roundest(value, uncertainty)

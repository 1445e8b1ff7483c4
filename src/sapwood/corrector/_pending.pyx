"""The memory of predictions that wait for their labels; see _pending.pxd."""

cimport cython
import numpy as np
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.math cimport INFINITY, NAN, floor
from libc.string cimport memcpy

cdef enum:
    NONE = -1       # there is no further prediction in a bucket
    FREE = -2       # there is no prediction in a place
    SLACK = 2       # labels by which a prediction may be older than others recently were
    NEAR = 3        # predictions that labels may skip and still be in order
    FAR = 64        # places beyond which predictions are not counted
    INDEX_BYTES = 20  # bytes besides the content: key, link, and the ends of a bucket


ROW_BITS = 2**63 - 1


@cython.final
cdef class PendingPredictions:
    """Pending predictions of some doubles each, found again by rows or by ids.

    Parameters
    ----------
    width : int
        The doubles of a prediction.
    most : int
        How many predictions there may be: a power of 2.

    Examples
    --------
    >>> import numpy as np
    >>> pending = PendingPredictions(2, 4)
    >>> for value in (1.0, 2.0, 3.0):  # when no label is known
    ...     pending.put_row(np.array([value, np.nan]), np.array([0.0, 10 * value]))
    >>> pending.take_row(np.array([2.0]), 0).tolist()
    [0.0, 20.0]
    >>> pending.take_row(np.array([2.0]), 1) is None
    True
    >>> pending.count
    2
    """

    def __cinit__(self, Py_ssize_t width, Py_ssize_t most):
        if width < 1 or most < 1 or most & (most - 1):
            raise ValueError("a memory needs doubles, and a power of 2 for a bound")
        self.turn = -1
        self.width, self.most, self.place_bytes = width, most, pending_bytes(width)
        if not self.resize(min(<Py_ssize_t>LEAST_ROOM, most)):
            raise MemoryError

    def __dealloc__(self):
        PyMem_RawFree(self.block)

    @property
    def nbytes(self):
        """Bytes that all places occupy."""
        return self.room * self.place_bytes

    # -- leaving and taking -------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t more) except -1 nogil:
        """Have room for so many predictions more, as far as the bound allows."""
        cdef Py_ssize_t room = self.room
        while room < self.most and room < self.next - self.first + more:
            room *= 2
        if room > self.room and not self.resize(room):
            with gil:
                raise MemoryError
        return 0

    cdef double* put(self, uint64_t key) noexcept nogil:
        """Add a prediction, in place of the oldest if there is no room; return its content."""
        cdef Py_ssize_t place
        if is_id(key) and self.count > 0:
            self.take_id(key)  # an earlier prediction of the same id is replaced
        if self.next - self.first == self.room:
            self.drop_oldest()
        place = self.next & (self.room - 1)
        self.keys[place] = key
        self.append(place)
        self.next += 1
        self.count += 1
        self.left += not is_id(key)
        return self.contents + place * self.width

    cdef const double* take(
        self, uint64_t key, double labels, const double* row
    ) noexcept nogil:
        """Take the prediction of a row: its content, valid until the next is added, or NULL.

        So many labels are known by now. The values of the row are needed where values that it may
        have appear while predictions are pending; NULL if its key does not depend on that.
        """
        cdef RowKeys keys
        cdef int32_t* chosen
        cdef Py_ssize_t place
        cdef double age
        if is_id(key):
            return self.take_id(key)
        if self.owed:
            take_unrecorded(self)
            self.left = 0
            return NULL
        self.find_keys(key, labels, row, &keys)
        chosen = self.find(&keys, labels)
        if chosen != NULL:
            place = chosen[0]
            age = labels - self.contents[place * self.width]
            self.move_turn(self.number_at(place), age)
            self.remove(chosen)
            self.close_up()
            count_immediate(self)
            self.reach = age if age > self.reach else self.reach
        else:
            place = self.take_in_turn()
        return self.contents + place * self.width if place >= 0 else NULL

    cdef int32_t* find(self, const RowKeys* keys, double labels) noexcept nogil:
        """The link to the prediction that a label takes, or NULL; overtaken predictions are
        dropped.

        That is the oldest that is younger than the last that was taken in order; or the oldest that
        is not too old; or the latest.
        """
        cdef int32_t* link
        cdef int32_t* chosen = NULL
        cdef double known, limit = 1.1 * self.reach + SLACK if self.reach > 0.0 else 0.0
        cdef double since = -INFINITY
        cdef Py_ssize_t at, place
        cdef bint is_late = False, is_next
        for at in range(keys.count):
            link = self.heads + self.bucket(keys.keys[at])
            while link[0] != NONE:
                place = link[0]
                known = self.contents[place * self.width]
                if self.keys[place] == keys.keys[at] and since < known <= keys.until[at]:
                    is_next = self.number_at(place) > self.turn
                    if is_late:
                        if link == self.links + chosen[0]:
                            link = chosen
                        self.remove(chosen)
                        chosen = NULL
                    if is_next:
                        return link
                    if chosen == NULL:
                        chosen, is_late = link, labels - known > limit
                link = self.links + place
            since = keys.until[at]
        return chosen

    cdef void move_turn(self, int64_t number, double age) noexcept nogil:
        """Mark a prediction that is taken as the last one in order, if labels seem to be in order.

        They are if hardly any prediction is skipped, or if it is as old as others were. A label
        that is far ahead of its time does not count; one that takes an older prediction ends the
        order.
        """
        cdef int64_t each, start = self.first if self.first > self.turn + 1 else self.turn + 1
        cdef Py_ssize_t skipped = 0, place
        if number > self.turn and age < 0.9 * self.reach - SLACK:
            if number - start > FAR:
                return
            for each in range(start, number):
                place = each & (self.room - 1)
                skipped += self.links[place] != FREE and not is_id(self.keys[place])
            if skipped >= NEAR:
                return
        self.turn = number

    cdef void appear(self, Py_ssize_t feature, double value, double labels) noexcept nogil:
        """Count a value in the keys of predictions from the next label on; NaN means any value."""
        cdef Py_ssize_t at, gone = 0
        if self.count == 0:
            self.appearance_count = 0
            return
        while gone < self.appearance_count and (
            self.appearances[gone].labels
            < self.contents[(self.first & (self.room - 1)) * self.width]
        ):
            gone += 1
        if gone == 0 and self.appearance_count == MOST_APPEARANCES:
            gone = 1
        self.appearance_count -= gone
        for at in range(self.appearance_count if gone else 0):
            self.appearances[at] = self.appearances[at + gone]
        self.appearances[self.appearance_count].labels = labels
        self.appearances[self.appearance_count].value = value
        self.appearances[self.appearance_count].feature = feature
        self.appearance_count += 1

    cdef void find_keys(
        self, uint64_t key, double labels, const double* row, RowKeys* found
    ) noexcept nogil:
        """Find the keys that a row had when predictions were added, those of the oldest first."""
        cdef Py_ssize_t at, turn
        cdef uint64_t part
        cdef double known = -INFINITY
        found.count = 0
        # First without all that has appeared, then with one appearance after the other.
        for turn in range(2 if row != NULL and self.appearance_count > 0 else 0):
            for at in range(self.appearance_count):
                part = appeared_part(&self.appearances[at], labels, row)
                if part == 0:
                    continue
                if turn == 0:
                    key -= part
                    continue
                if self.appearances[at].labels > known and found.count < MOST_KEYS - 1:
                    known = self.appearances[at].labels
                    found.keys[found.count], found.until[found.count] = row_key_of(key), known
                    found.count += 1
                key += part
        found.keys[found.count], found.until[found.count] = row_key_of(key), INFINITY
        found.count += 1

    cdef const double* take_id(self, uint64_t key) noexcept nogil:
        """Take out the prediction of an id: its content, or NULL."""
        cdef int32_t* link = self.heads + self.bucket(key)
        cdef Py_ssize_t place
        while link[0] != NONE:
            place = link[0]
            if self.keys[place] == key:
                self.remove(link)
                self.close_up()
                return self.contents + place * self.width
            link = self.links + place
        return NULL

    cdef Py_ssize_t take_in_turn(self) noexcept nogil:
        """Take the oldest prediction for a label that found none; its place if it counts, or -1."""
        cdef Py_ssize_t place = -1
        if self.unrecorded > 0:
            self.owed = True
            take_unrecorded(self)
        elif self.left == 1 and self.misses == MOST_MISSES:
            if self.count > 0 and not is_id(self.keys[self.first & (self.room - 1)]):
                place = self.first & (self.room - 1)
                self.drop_oldest()
        elif self.left > 0:
            self.misses = self.misses + 1 if self.left == 1 else 1
            if self.misses == MOST_MISSES:
                self.drop_missed()
        self.left = 0
        return place

    cdef void drop_missed(self) noexcept nogil:
        """Drop the predictions of the labels that found none: the oldest ones of rows."""
        cdef Py_ssize_t missed = MOST_MISSES
        while (
            missed > 0
            and self.count > 0
            and not is_id(self.keys[self.first & (self.room - 1)])
        ):
            self.drop_oldest()
            missed -= 1

    cdef void shrink(self) noexcept nogil:
        """Free unused room."""
        cdef Py_ssize_t span = self.next - self.first, room = min(<Py_ssize_t>LEAST_ROOM, self.most)
        if self.room > room and 4 * span <= self.room:
            while room < 2 * span:
                room *= 2
            self.resize(room)

    # -- the ring and its buckets -------------------------------------------------------------

    cdef inline int64_t number_at(self, Py_ssize_t place) noexcept nogil:
        """The number of the prediction in a place."""
        return self.first + ((place - self.first) & (self.room - 1))

    cdef inline Py_ssize_t bucket(self, uint64_t key) noexcept nogil:
        """By the upper bits of a key, which all of its values have had a hand in."""
        return (key >> 40) & (self.room - 1)

    cdef inline void append(self, Py_ssize_t place) noexcept nogil:
        """Put a place at the end of its bucket."""
        cdef Py_ssize_t bucket = self.bucket(self.keys[place])
        self.links[place] = NONE
        if self.heads[bucket] == NONE:
            self.heads[bucket] = place
        else:
            self.links[self.tails[bucket]] = place
        self.tails[bucket] = place

    cdef inline void remove(self, int32_t* link) noexcept nogil:
        """Free the place to which a link leads, and unlink it."""
        cdef Py_ssize_t place = link[0], bucket = self.bucket(self.keys[place])
        link[0] = self.links[place]
        if link[0] == NONE and link != self.heads + bucket:
            self.tails[bucket] = link - self.links
        self.links[place] = FREE
        self.count -= 1

    cdef void drop_oldest(self) noexcept nogil:
        """Let the oldest prediction, which is also the oldest of its bucket, give way."""
        self.remove(self.heads + self.bucket(self.keys[self.first & (self.room - 1)]))
        self.close_up()

    cdef inline void close_up(self) noexcept nogil:
        """Let the ring begin at a pending prediction, and number them from 0 if there is none."""
        if self.count == 0:
            self.first = self.next = 0
            self.turn = -1
            self.appearance_count = 0
        else:
            while self.links[self.first & (self.room - 1)] == FREE:
                self.first += 1

    cdef bint resize(self, Py_ssize_t room) noexcept nogil:
        """Move all predictions to another ring; False, and nothing changes, without memory."""
        cdef double* contents
        cdef const double* old_contents = self.contents
        cdef const uint64_t* old_keys = self.keys
        cdef const int32_t* old_links = self.links
        cdef void* old_block = self.block
        cdef Py_ssize_t place, old_place, old_room = self.room
        cdef int64_t number
        contents = <double*>PyMem_RawMalloc(room * self.place_bytes)
        if contents == NULL:
            return False
        self.block, self.contents, self.room = contents, contents, room
        self.keys = <uint64_t*>(contents + room * self.width)
        self.links = <int32_t*>(self.keys + room)
        self.heads, self.tails = self.links + room, self.links + 2 * room
        for place in range(room):
            self.links[place] = FREE
            self.heads[place] = NONE
        for number in range(self.first, self.next):
            old_place, place = number & (old_room - 1), number & (room - 1)
            if old_links[old_place] != FREE:
                self.keys[place] = old_keys[old_place]
                memcpy(
                    contents + place * self.width,
                    old_contents + old_place * self.width,
                    self.width * sizeof(double),
                )
                self.append(place)
        PyMem_RawFree(old_block)
        return True

    # -- from Python --------------------------------------------------------------------------

    def put_row(self, const double[::1] row, const double[::1] content):
        """Store the prediction of a row."""
        if content.shape[0] != self.width:
            raise ValueError(f"a prediction has {self.width} doubles, not {content.shape[0]}")
        self.reserve(1)
        memcpy(self.put(row_key(row)), &content[0], self.width * sizeof(double))

    def put_id(self, number, const double[::1] content):
        """Keep the prediction of an id, given the number that stands for it."""
        if content.shape[0] != self.width:
            raise ValueError(f"a prediction has {self.width} doubles, not {content.shape[0]}")
        self.reserve(1)
        memcpy(self.put(id_key_of(number)), &content[0], self.width * sizeof(double))

    def put_key(self, uint64_t key, const double[::1] content):
        """Keep the prediction of a key."""
        if content.shape[0] != self.width:
            raise ValueError(f"a prediction has {self.width} doubles, not {content.shape[0]}")
        self.reserve(1)
        memcpy(self.put(key), &content[0], self.width * sizeof(double))

    def put_keys(self, const uint64_t[::1] keys, const double[:, ::1] contents):
        """Keep the predictions of some keys, in their order."""
        cdef Py_ssize_t row, rows = keys.shape[0]
        if contents.shape[0] != rows or contents.shape[1] != self.width:
            raise ValueError("the arrays do not fit together")
        self.reserve(rows)
        for row in range(rows):
            memcpy(self.put(keys[row]), &contents[row, 0], self.width * sizeof(double))

    def take_keys(self, const uint64_t[::1] keys, const double[::1] labels):
        """Take out the predictions of some keys, one after the other; NaN where there is none.

        `labels` are how many labels are known when each is taken.
        """
        cdef double[:, ::1] found = np.full((keys.shape[0], self.width), np.nan)
        cdef const double* one
        cdef Py_ssize_t row
        if labels.shape[0] != keys.shape[0]:
            raise ValueError("the arrays do not fit together")
        for row in range(keys.shape[0]):
            one = self.take(keys[row], labels[row], NULL)
            if one != NULL:
                memcpy(&found[row, 0], one, self.width * sizeof(double))
        self.shrink()
        return found.base

    def take_into(
        self,
        const uint64_t[::1] keys,
        double labels,
        double[:, ::1] records,
        unsigned char[::1] done,
    ):
        """Take out the pending predictions of rows, once.

        - `keys`, shape (n,): those of the rows.
        - `labels`: how many labels were known before the first of the rows.
        - `records`, shape (n, width): gets the predictions; a row that has none is left as it is.
        - `done`, shape (1,): whether this was done; nothing is done twice.
        """
        cdef Py_ssize_t row
        cdef const double *found
        if records.shape[0] != keys.shape[0] or records.shape[1] != self.width:
            raise ValueError("the arrays do not fit together")
        if done[0]:
            return
        for row in range(keys.shape[0]):
            found = self.take(keys[row], labels + row, NULL)
            if found != NULL:
                memcpy(&records[row, 0], found, self.width * sizeof(double))
        self.shrink()
        done[0] = 1

    def take_one(self, uint64_t key, double labels):
        """Take out the pending prediction of a key, as `key_of_id` returns it; None if none is."""
        cdef const double* found = self.take(key, labels, NULL)
        if found == NULL:
            return None
        return np.array(<const double[: self.width]>found)

    def add_unrecorded(self, Py_ssize_t predictions):
        """Count predictions before the first label."""
        count_unrecorded(self, predictions)

    def take_row(self, const double[::1] row, double labels):
        """Take out the prediction of a row, now that so many labels are known; None if none is."""
        cdef const double* found
        self.check_features(row.shape[0])
        found = self.take(row_key(row), labels, &row[0] if row.shape[0] else NULL)
        if found == NULL:
            return None
        return np.array(<const double[: self.width]>found)

    def add_appearance(self, Py_ssize_t feature, double value, double labels):
        """Count a value in keys once so many labels are known, and one more; NaN: any value."""
        self.appear(feature, value, labels)

    def check_features(self, Py_ssize_t features):
        """Raise unless rows of so many features have all values that have appeared."""
        cdef Py_ssize_t at
        for at in range(self.appearance_count):
            if not 0 <= self.appearances[at].feature < features:
                raise ValueError(
                    f"a value of feature {self.appearances[at].feature} of {features} has appeared"
                )

    def state(self):
        """Return its counts, and of all pending predictions keys, ages and contents.

        The age of a prediction here is how many predictions were added since, itself included.
        """
        cdef Py_ssize_t place, at = 0, count = -1
        cdef int64_t number
        cdef Appearance each
        cdef uint64_t[::1] keys
        cdef int64_t[::1] ages
        cdef double[:, ::1] view
        while count != self.count:  # as NumPy lets go of the GIL where it asks for zeros
            count = self.count
            keys, ages = np.zeros(count, np.uint64), np.zeros(count, np.int64)
            view = contents = np.zeros((count, self.width))
        counts = [self.room, self.reach, self.misses, self.left, self.unrecorded, self.owed]
        for number in range(self.first, self.next):
            place = number & (self.room - 1)
            if self.links[place] != FREE:
                keys[at], ages[at] = self.keys[place], self.next - number
                memcpy(
                    &view[at, 0], self.contents + place * self.width, self.width * sizeof(double)
                )
                at += 1
        counts.append(np.count_nonzero(keys.base >> np.uint64(63)))
        if self.turn >= self.first or self.appearance_count > 0:
            counts.append(self.next - self.turn if self.turn >= self.first else 0)
        for at in range(self.appearance_count):
            each = self.appearances[at]
            counts += [each.labels, each.value if each.value == each.value else -1, each.feature]
        return np.array(counts, np.float64), keys.base, ages.base, contents

    def restore(self, sizes, keys, const int64_t[::1] ages, contents):
        """Take over what `state` returned; earlier releases had no ids, and two counts less.

        The last counts are there if needed: how many predictions ago the last one in order was
        left, and the labels, value (-1 for any) and feature of each appearance.

        Raises
        ------
        ValueError
            If that cannot be; nothing is changed then.
        """
        cdef const double[:, ::1] view = contents
        cdef Py_ssize_t place, room, at, count = len(keys)
        cdef const uint64_t[::1] own
        room, reach = int(sizes[0]), float(sizes[1])
        misses, left, unrecorded = map(int, sizes[2:5])
        owed = len(sizes) > 5 and sizes[5] == 1.0
        own = np.array(keys) if len(sizes) > 5 else keys & np.uint64(ROW_BITS)
        good = min(<Py_ssize_t>LEAST_ROOM, self.most) <= room <= self.most
        if not good or room & (room - 1) or room != sizes[0]:
            raise ValueError(f"there cannot be room for {sizes[0]} predictions")
        if not 0.0 <= reach <= 2.0**53:
            raise ValueError(f"labels cannot come {sizes[1]} labels late")
        if not 0 <= misses <= MOST_MISSES or misses != sizes[2]:
            raise ValueError(f"{sizes[2]} labels cannot have been missed")
        if not 0 <= left <= 2**53 or left != sizes[3]:
            raise ValueError(f"there cannot be {sizes[3]} predictions since the last label")
        if not 0 <= unrecorded <= self.most or unrecorded != sizes[4]:
            raise ValueError(f"there cannot be {sizes[4]} predictions before the first label")
        if len(sizes) > 5 and (sizes[5] not in (0.0, 1.0) or owed and not unrecorded):
            raise ValueError("labels of predictions that there are not cannot be arriving")
        if len(sizes) > 5 and sizes[6] != np.count_nonzero(own.base >> np.uint64(63)):
            raise ValueError(f"there are not {sizes[6]:g} predictions with ids")
        turn, appeared = 0, np.array(sizes[8:], np.float64).reshape(-1, 3)
        if len(sizes) > 7:
            turn = int(sizes[7])
            if turn != sizes[7] or not 0 <= turn <= room:
                raise ValueError(f"no label can have been in order {sizes[7]} predictions ago")
            if len(appeared) > (MOST_APPEARANCES if count else 0):
                raise ValueError(f"there cannot be {len(appeared)} appearances")
            known, features = appeared[:, 0], appeared[:, 2]
            if not (np.all((known >= 0) & (known < 2.0**53)) and np.all(np.diff(known) >= 0)):
                raise ValueError("the appearances are not in order")
            if not np.all((features >= 0) & (features < 2**31) & (features == np.floor(features))):
                raise ValueError("the appearances are of no features")
        if len(ages) != count or view.shape[0] != count or view.shape[1] != self.width:
            raise ValueError("there are not as many ages of predictions as predictions")
        for at in range(count):
            if not (ages[at + 1] if at + 1 < count else 0) < ages[at] <= room:
                raise ValueError(f"the age of prediction {at} is wrong")
        self.count, self.first, self.next = 0, 0, 0
        if not self.resize(room):
            raise MemoryError
        self.count, self.reach = count, reach
        self.misses, self.left, self.unrecorded, self.owed = misses, left, unrecorded, owed
        self.next = ages[0] if count else 0
        self.turn = self.next - turn if 0 < turn <= self.next else -1
        self.appearance_count = 0
        for known, value, feature in appeared.tolist():
            self.appearances[self.appearance_count].labels = known
            self.appearances[self.appearance_count].value = value if value >= 0.0 else NAN
            self.appearances[self.appearance_count].feature = int(feature)
            self.appearance_count += 1
        for at in range(count):
            place = self.next - ages[at]
            self.keys[place] = own[at]
            memcpy(
                self.contents + place * self.width, &view[at, 0], self.width * sizeof(double)
            )
            self.append(place)


cdef inline uint64_t appeared_part(
    const Appearance* appearance, double labels, const double* row
) noexcept nogil:
    """The part in the key of a row of a value that appeared before so many labels; 0 if none."""
    cdef double value = row[appearance.feature]
    if appearance.labels >= labels:
        return 0
    if appearance.value == appearance.value and appearance.value != value:
        return 0
    return value_key(value, appearance.feature)


cdef uint64_t row_key(const double[::1] row) noexcept nogil:
    cdef uint64_t key = 0
    cdef Py_ssize_t feature
    for feature in range(row.shape[0]):
        key += value_key(row[feature], feature)
    return row_key_of(key)


def pending_bytes(Py_ssize_t width):
    """Return the bytes that the place of a prediction of so many doubles occupies."""
    return 8 * width + INDEX_BYTES


# -- keys ---------------------------------------------------------------------------------------

cdef uint64_t text_hash(str text, uint64_t found):
    """FNV-1a of the characters of a text: the same on all machines."""
    cdef Py_UCS4 character
    for character in text:
        found = (found ^ <uint64_t>character) * <uint64_t>1099511628211
    return found ^ (found >> 32)


cdef inline uint64_t whole_number(uint64_t value, uint64_t found) noexcept nogil:
    return (value ^ (found >> 7)) * <uint64_t>0xD6E8FEB86659FD93


cdef inline uint64_t number_of_double(double real, uint64_t found) noexcept nogil:
    """The same as that of an int, where it is a whole number."""
    if real == floor(real) and -9.2e18 < real < 9.2e18:
        return whole_number(<uint64_t><int64_t>real, found)
    return ((<uint64_t*>&real)[0] ^ found) * <uint64_t>0x9E3779B97F4A7C15


cdef uint64_t number_of(object value, uint64_t salt) except? 0:
    """A number that stands for an id or for a value: equal values have equal numbers."""
    cdef uint64_t found = salt ^ <uint64_t>0xCBF29CE484222325
    if type(value) is float:
        return number_of_double(value, found)
    if type(value) is str:
        return text_hash(value, found)
    if isinstance(value, int):
        return whole_number(<uint64_t>(value & 0xFFFFFFFFFFFFFFFF), found)
    if isinstance(value, tuple):
        for part in value:
            found = id_key_of(found ^ number_of(part, found))
        return found
    if isinstance(value, np.generic):
        return number_of(value.item(), salt)
    return text_hash(repr(value), ~found)


def key_of_id(id):
    """Return the key of an id: of a text, a number, or a tuple of such.

    Equal ids have equal keys on all machines; those of different ids differ, but for one in 2^63.

    Examples
    --------
    >>> key_of_id(7) == key_of_id(7.0) != key_of_id("7")
    True
    """
    return id_key_of(number_of(id, 0))


def keys_of_ids(ids):
    """Return the keys of some ids as an array.

    Examples
    --------
    >>> bool(keys_of_ids(["a", 3])[1] == key_of_id(3))
    True
    """
    cdef Py_ssize_t at
    values = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    cdef uint64_t[::1] keys = np.empty(len(values), np.uint64)
    for at in range(keys.shape[0]):
        keys[at] = id_key_of(number_of(values[at], 0))
    return keys.base


cdef inline uint64_t part_key(uint64_t name, object value) except? 0:
    """The share of a named value in the key of its row; 0 if it is missing."""
    if value is None or value != value:
        return 0
    return id_key_of(name ^ number_of(value, 1))


def key_of_row(x):
    """Return the key of a row as it came, given as a dict: missing values are left out.

    It does not depend on what a model knows of the features.

    Examples
    --------
    >>> key_of_row({"a": 1.0, "b": None, "c": "x"}) == key_of_row({"c": "x", "a": 1})
    True
    """
    cdef uint64_t total = 0
    for name, value in x.items():
        total += part_key(number_of(name, 2), value)
    return row_key_of(total)


def keys_of_columns(columns, Py_ssize_t rows):
    """Return the keys of rows, given as columns of arrays or lists by name.

    Examples
    --------
    >>> keys = keys_of_columns({"a": np.array([1.0, np.nan]), "c": ["x", "y"]}, 2)
    >>> [key_of_row({"a": 1.0, "c": "x"}), key_of_row({"c": "y"})] == keys.tolist()
    True
    """
    cdef uint64_t[::1] keys = np.zeros(rows, np.uint64)
    cdef const double[:] numbers
    cdef uint64_t part
    cdef Py_ssize_t at
    for name, column in columns.items():
        part = number_of(name, 2)
        known = {}
        if isinstance(column, np.ndarray) and column.dtype == np.float64:
            numbers = column
            for at in range(rows):
                if numbers[at] == numbers[at]:
                    keys[at] += id_key_of(
                        part ^ number_of_double(numbers[at], 1 ^ <uint64_t>0xCBF29CE484222325)
                    )
            continue
        values = column.tolist() if isinstance(column, np.ndarray) else column
        for at in range(rows):
            value = values[at]
            found = known.get(value)
            if found is None:
                found = known[value] = part_key(part, value)
            keys[at] += <uint64_t>found
    for at in range(rows):
        keys[at] = row_key_of(keys[at])
    return keys.base

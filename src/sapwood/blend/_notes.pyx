"""The memory of what was said; see _notes.pxd."""

cimport cython
import numpy as np
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.string cimport memcpy

cdef enum:
    NONE = -1       # there is no further note in a bucket
    FREE = -2       # there is no note in a place
    NOTE_INDEX = 20  # bytes of a note beside its content: key, link, and the ends of a bucket


@cython.final
cdef class Notes:
    """Notes of some doubles each, found again by rows.

    Parameters
    ----------
    width : int
        The doubles of a note.
    most : int
        How many notes there may be: a power of 2.

    Examples
    --------
    >>> import numpy as np
    >>> notes = Notes(2, 4)
    >>> for said in (1.0, 2.0, 3.0):  # when no label is known
    ...     notes.leave_row(np.array([said, np.nan]), np.array([0.0, 10 * said]))
    >>> notes.take_row(np.array([2.0]), 0).tolist()
    [0.0, 20.0]
    >>> notes.take_row(np.array([2.0]), 1) is None
    True
    >>> notes.count
    2
    """

    def __cinit__(self, Py_ssize_t width, Py_ssize_t most):
        if width < 1 or most < 1 or most & (most - 1):
            raise ValueError("a memory needs doubles, and a power of 2 for a bound")
        self.width, self.most, self.place_bytes = width, most, bytes_of_a_note(width)
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
        """Have room for so many notes more, as far as the bound allows."""
        cdef Py_ssize_t room = self.room
        while room < self.most and room < self.next - self.first + more:
            room *= 2
        if room > self.room and not self.resize(room):
            with gil:
                raise MemoryError
        return 0

    cdef double* leave(self, uint64_t key) noexcept nogil:
        """Leave a note, for which there is room, or the oldest gives way; where its content goes."""
        cdef Py_ssize_t place
        if self.next - self.first == self.room:
            self.forget_first()
        place = self.next & (self.room - 1)
        self.keys[place] = key
        self.append(place)
        self.next += 1
        self.count += 1
        self.left += 1
        return self.contents + place * self.width

    cdef const double* take(self, uint64_t key, double labels) noexcept nogil:
        """Take out the note about a row: its content, until the next note is left, or NULL.

        So many labels are known by now.
        """
        cdef int32_t* link = self.heads + self.bucket(key)
        cdef int32_t* chosen = NULL
        cdef Py_ssize_t place
        cdef double age = 0.0
        while link[0] != NONE:
            place = link[0]
            if self.keys[place] == key:
                if chosen != NULL:
                    if link == self.links + chosen[0]:
                        link = chosen
                    self.remove(chosen)
                chosen = link
                age = labels - self.contents[place * self.width]
                if age <= self.reach:
                    break
            link = self.links + place
        if chosen != NULL:
            place = chosen[0]
            self.remove(chosen)
            self.close_up()
            count_at_once(self)
            self.reach = age if age > self.reach else self.reach
        else:
            place = self.take_in_turn()
        return self.contents + place * self.width if place >= 0 else NULL

    cdef Py_ssize_t take_in_turn(self) noexcept nogil:
        """Take out the oldest note for a label that found none; its place if it counts, or -1."""
        cdef Py_ssize_t place = -1
        if self.blanks > 0:
            take_blank(self)
        elif self.left > 0:
            if self.left == 1 and self.misses == MOST_MISSES:
                place = self.first & (self.room - 1)
            elif self.left == 1:
                self.misses += 1
            self.forget_first()
        self.left = 0
        return place

    cdef void tidy(self) noexcept nogil:
        """Give back room that is not needed; it stays where memory does not suffice for less."""
        cdef Py_ssize_t span = self.next - self.first, room = min(<Py_ssize_t>LEAST_ROOM, self.most)
        if self.room > room and 4 * span <= self.room:
            while room < 2 * span:
                room *= 2
            self.resize(room)

    # -- the ring and its buckets -------------------------------------------------------------

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
        """Free the place to which a link leads; the note before it, or the bucket, skips it."""
        cdef Py_ssize_t place = link[0], bucket = self.bucket(self.keys[place])
        link[0] = self.links[place]
        if link[0] == NONE and link != self.heads + bucket:
            self.tails[bucket] = link - self.links
        self.links[place] = FREE
        self.count -= 1

    cdef void forget_first(self) noexcept nogil:
        """Let the oldest note, which is also the oldest of its bucket, give way."""
        self.remove(self.heads + self.bucket(self.keys[self.first & (self.room - 1)]))
        self.close_up()

    cdef inline void close_up(self) noexcept nogil:
        """Let the ring begin at a note that waits, and number them from 0 if there is none."""
        if self.count == 0:
            self.first = self.next = 0
        else:
            while self.links[self.first & (self.room - 1)] == FREE:
                self.first += 1

    cdef bint resize(self, Py_ssize_t room) noexcept nogil:
        """Lay all notes into another ring; False, and all is as it was, if there is no memory."""
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

    def leave_row(self, const double[::1] row, const double[::1] content):
        """Leave a note about a row."""
        if content.shape[0] != self.width:
            raise ValueError(f"a note has {self.width} doubles, not {content.shape[0]}")
        self.reserve(1)
        memcpy(self.leave(row_key(row)), &content[0], self.width * sizeof(double))

    def leave_blanks(self, Py_ssize_t predictions):
        """Count predictions before the first label."""
        count_blanks(self, predictions)

    def take_row(self, const double[::1] row, double labels):
        """Take out the note about a row, now that so many labels are known; None if none is."""
        cdef const double* found = self.take(row_key(row), labels)
        if found == NULL:
            return None
        return np.array(<const double[: self.width]>found)

    def state(self):
        """Return its counts, and of all notes that wait keys, ages and contents.

        The age of a note here is how many notes were left since, itself included.
        """
        cdef Py_ssize_t place, at = 0, count = -1
        cdef int64_t number
        cdef uint64_t[::1] keys
        cdef int64_t[::1] ages
        cdef double[:, ::1] view
        while count != self.count:  # as NumPy lets go of the GIL where it asks for zeros
            count = self.count
            keys, ages = np.zeros(count, np.uint64), np.zeros(count, np.int64)
            view = contents = np.zeros((count, self.width))
        counts = [self.room, self.reach, self.misses, self.left, self.blanks]
        for number in range(self.first, self.next):
            place = number & (self.room - 1)
            if self.links[place] != FREE:
                keys[at], ages[at] = self.keys[place], self.next - number
                memcpy(
                    &view[at, 0], self.contents + place * self.width, self.width * sizeof(double)
                )
                at += 1
        return np.array(counts, np.float64), keys.base, ages.base, contents

    def restore(self, sizes, const uint64_t[::1] keys, const int64_t[::1] ages, contents):
        """Take over what `state` returned.

        Raises
        ------
        ValueError
            If that cannot be; nothing is changed then.
        """
        cdef const double[:, ::1] view = contents
        cdef Py_ssize_t place, room, at, count = len(keys)
        room, reach = int(sizes[0]), float(sizes[1])
        misses, left, blanks = map(int, sizes[2:])
        good = min(<Py_ssize_t>LEAST_ROOM, self.most) <= room <= self.most
        if not good or room & (room - 1) or room != sizes[0]:
            raise ValueError(f"there cannot be room for {sizes[0]} notes")
        if not 0.0 <= reach <= 2.0**53:
            raise ValueError(f"labels cannot come {sizes[1]} labels late")
        if not 0 <= misses <= MOST_MISSES or misses != sizes[2]:
            raise ValueError(f"{sizes[2]} labels cannot have been missed")
        if not 0 <= left <= 2**53 or left != sizes[3]:
            raise ValueError(f"there cannot be {sizes[3]} notes since the last label")
        if not 0 <= blanks <= self.most or blanks != sizes[4]:
            raise ValueError(f"there cannot be {sizes[4]} predictions before the first label")
        if len(ages) != count or view.shape[0] != count or view.shape[1] != self.width:
            raise ValueError("there are not as many ages of notes as notes")
        for at in range(count):
            if not (ages[at + 1] if at + 1 < count else 0) < ages[at] <= room:
                raise ValueError(f"the age of note {at} is wrong")
        self.count, self.first, self.next = 0, 0, 0
        if not self.resize(room):
            raise MemoryError
        self.count, self.reach = count, reach
        self.misses, self.left, self.blanks = misses, left, blanks
        self.next = ages[0] if count else 0
        for at in range(count):
            place = self.next - ages[at]
            self.keys[place] = keys[at]
            memcpy(
                self.contents + place * self.width, &view[at, 0], self.width * sizeof(double)
            )
            self.append(place)


cdef uint64_t row_key(const double[::1] row) noexcept nogil:
    cdef uint64_t key = 0
    cdef Py_ssize_t feature
    for feature in range(row.shape[0]):
        key += value_key(row[feature], feature)
    return key


def bytes_of_a_note(Py_ssize_t width):
    """Return the bytes that the place of a note of so many doubles occupies."""
    return 8 * width + NOTE_INDEX

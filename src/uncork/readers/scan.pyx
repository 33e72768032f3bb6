# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""CompiledScanner: trace events → columns, straight from the bytes; no object per event, no lock held.

Memory is safe on hostile files by one rule: the text is a ``bytes`` object, which always ends with a zero byte, and every
byte is looked at before the next one is stepped to. No token may hold a zero byte, so nothing runs past the end. Whatever
looks unusual is refused (NULL) and left to the tolerant walk, which mends it and hands it back.
"""

from collections import Counter
import os

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from uncork.events import ArgColumn, Strings
from uncork.readers.columns import Scanned
from uncork.readers.columns import ABSENT as _ABSENT, NOT_A_NUMBER as _NOT_A_NUMBER
from uncork.readers.portable import key_text, number_of, time_of
from uncork.readers.selection import merged

ctypedef const uint8_t* P

cdef int64_t ABSENT = _ABSENT
cdef int64_t NOT_A_NUMBER = _NOT_A_NUMBER

cdef enum:
    INTS = 0
    FLOATS = 1
    TEXTS = 2
    NESTED = 3
    MISSING = 4
    DEEPEST = 64
    MOST_KEYS = 60000
    MOST_ARGS = 1 << 20
    ID_KEY = 0
    BP_KEY = 1

cdef enum Field:
    F_OTHER, F_PH, F_CAT, F_NAME, F_PID, F_TID, F_TS, F_DUR, F_ID, F_BP, F_ARGS

include "tables.pxi"
include "tokens.pxi"


cdef struct Last:
    uint8_t text[24]
    size_t n
    int32_t place
    bint quoted


cdef struct Held:
    uint32_t key
    uint32_t kind
    int64_t val


cdef struct Arg:
    Vec rows[4]
    Vec vals[4]


cdef class Block:
    """Memory that a column lies in, freed with the last array that looks at it."""

    cdef void* p
    cdef Py_ssize_t n

    def __dealloc__(self):
        free(self.p)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.p, self.n, 0, flags)


cdef object array_of(Vec* v, object dtype):
    """Return a column as an array and let go of it."""
    cdef Block block
    if v.n == 0:
        free(v.p)
        memset(v, 0, sizeof(Vec))
        return np.empty(0, dtype)
    block = Block.__new__(Block)
    block.p = realloc(v.p, v.n)
    if block.p == NULL:
        block.p = v.p
    block.n = <Py_ssize_t>v.n
    memset(v, 0, sizeof(Vec))
    return np.frombuffer(block, dtype)


# The rare cases below need Python. They stand in functions of their own, because Cython takes Python's lock at the
# start of any function that may need it, needed or not.


cdef void odd_time(P p, size_t n, int64_t* out, int64_t* huge, bint* fraction) noexcept with gil:
    """Read a time with an exponent, very many digits or no digits at all."""
    try:
        value, is_huge, has_fraction = time_of(PyBytes_FromStringAndSize(<char*>p, n))
        out[0] = value
        huge[0] = is_huge
        fraction[0] = has_fraction
    except Exception:
        out[0] = NOT_A_NUMBER


cdef uint32_t odd_number(P p, size_t n, int64_t* out) noexcept with gil:
    """Read a number with an exponent or very many digits; return whether it is whole."""
    cdef double f = 0
    try:
        number = number_of(PyBytes_FromStringAndSize(<char*>p, n))
        if isinstance(number, int):
            out[0] = number
            return INTS
        f = number
    except Exception:
        pass
    memcpy(out, &f, 8)
    return FLOATS


cdef int escaped_field(P k, size_t n) noexcept with gil:
    """Return which field a key written with escapes is."""
    names = ("", "ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp", "args")
    try:
        text = key_text(PyBytes_FromStringAndSize(<char*>k, n))
        return names.index(text) if text in names else 0
    except Exception:
        return 0


cdef uint8_t odd_phase(P p, size_t n) noexcept with gil:
    """Return a phase letter written with escapes, 0 where it is none."""
    try:
        text = key_text(PyBytes_FromStringAndSize(<char*>p + 1, n - 2)) if p[0] == 34 else ""
        return ord(text) if len(text) == 1 and ord(text) < 128 else 0
    except Exception:
        return 0


cdef object WIDTHS = (np.int64, np.float64, np.int32, np.int32)
cdef size_t WIDTH[4]
WIDTH[0] = 8
WIDTH[1] = 8
WIDTH[2] = 4
WIDTH[3] = 4


cdef class CompiledScanner:
    """Collects events into columns, a batch of the document at a time."""

    cdef public object repairs
    cdef Table strings, keys, forms, tracks
    cdef Vec form, name, track, ts, dur
    cdef Arg* args
    cdef uint32_t* guess
    cdef uint64_t* seen
    cdef uint32_t* where
    cdef int64_t* before
    cdef size_t args_cap
    cdef Held* held
    cdef size_t held_cap
    cdef uint64_t stamp
    cdef Last last_pid, last_tid
    cdef int32_t last_form, last_track, last_cat
    cdef uint8_t last_ph
    cdef int32_t[2] last_pair
    cdef bint no_memory, fraction
    cdef int64_t odd_args, text_times, huge_times

    def __cinit__(self):
        cdef uint64_t seed = int.from_bytes(os.urandom(8), "little")
        self.repairs = Counter()
        self.last_form = self.last_track = -1
        self.held_cap = 256
        self.held = <Held*>malloc(self.held_cap * sizeof(Held))
        if (
            table_open(&self.strings, seed) < 0 or table_open(&self.keys, seed) < 0 or table_open(&self.forms, seed) < 0
            or table_open(&self.tracks, seed) < 0 or self.held == NULL
        ):
            raise MemoryError
        if self.key_of(<P>b"@id", 3) != ID_KEY or self.key_of(<P>b"@bp", 3) != BP_KEY:
            raise MemoryError

    def __dealloc__(self):
        cdef size_t k
        cdef int kind
        table_close(&self.strings)
        table_close(&self.keys)
        table_close(&self.forms)
        table_close(&self.tracks)
        free(self.form.p)
        free(self.name.p)
        free(self.track.p)
        free(self.ts.p)
        free(self.dur.p)
        for k in range(self.args_cap):
            for kind in range(4):
                free(self.args[k].rows[kind].p)
                free(self.args[k].vals[kind].p)
        free(self.args)
        free(self.guess)
        free(self.seen)
        free(self.where)
        free(self.before)
        free(self.held)

    cdef int64_t key_of(self, P p, size_t n) noexcept nogil:
        """Return the index of a key of ``args``, -1 where there is no memory, -2 where there are too many keys."""
        cdef size_t count = self.keys.ends.n // 8 - 1, cap
        cdef int32_t key
        cdef void* room
        if count >= MOST_KEYS:
            return -2
        key = intern(&self.keys, p, n)
        if key < 0:
            return -1
        if <size_t>key >= self.args_cap:
            cap = self.args_cap * 2 if self.args_cap else 64
            room = realloc(self.args, cap * sizeof(Arg))
            if room == NULL:
                return -1
            self.args = <Arg*>room
            memset(&self.args[self.args_cap], 0, (cap - self.args_cap) * sizeof(Arg))
            room = realloc(self.seen, cap * 8)
            if room == NULL:
                return -1
            self.seen = <uint64_t*>room
            memset(&self.seen[self.args_cap], 0, (cap - self.args_cap) * 8)
            room = realloc(self.where, cap * 4)
            if room == NULL:
                return -1
            self.where = <uint32_t*>room
            room = realloc(self.guess, cap * 4)
            if room == NULL:
                return -1
            self.guess = <uint32_t*>room
            memset(&self.guess[self.args_cap], 0, (cap - self.args_cap) * 4)
            room = realloc(self.before, cap * 8)
            if room == NULL:
                return -1
            self.before = <int64_t*>room
            memset(&self.before[self.args_cap], 0xFF, (cap - self.args_cap) * 8)
            self.args_cap = cap
        return key

    cdef P time(self, P p, P end, int64_t* out, bint start) noexcept nogil:
        """Read a time, whatever it is written as."""
        cdef P q, stop
        cdef bint fraction = False, text = p[0] == 34
        cdef int64_t huge = 0
        q = plain_time(p + text, out, &fraction)
        if q != NULL and text:
            q = q + 1 if q[0] == 34 else NULL
        stop = q
        if q == NULL:
            stop = value_end(p, end, 0)
            if stop == NULL:
                return NULL
        self.text_times += text
        if q == NULL:
            odd_time(p, stop - p, out, &huge, &fraction)
            if start:
                self.huge_times += huge
        if fraction:
            self.fraction = True
        return stop

    cdef P same_as_before(self, P p, P end, int64_t before) noexcept nogil:
        """Return the end of a text or nested value that equals the last one under its key, else NULL.

        What equals a complete text up to a quote, or a complete list, ends where that ended: it need not be read again.
        """
        cdef int64_t* ends = <int64_t*>self.strings.ends.p
        cdef bint nested = before & 1
        before >>= 1
        cdef int64_t n = ends[before + 1] - ends[before]
        if nested != (p[0] == 91):
            return NULL
        if not nested:
            p += 1
        if end - p <= n or memcmp(p, self.strings.blob.p + ends[before], n) != 0:
            return NULL
        if nested:
            return p + n
        return p + n + 1 if p[n] == 34 else NULL

    cdef P value(self, P p, P end, uint32_t key, uint32_t* kind, int64_t* out) noexcept nogil:
        """Read one value of ``args``."""
        cdef P stop, q
        cdef int64_t v = 0
        cdef double f
        cdef uint8_t c = p[0]
        if (c == 34 or c == 91) and self.before[key] >= 0:
            stop = self.same_as_before(p, end, self.before[key])
            if stop != NULL:
                kind[0] = NESTED if c == 91 else TEXTS
                out[0] = self.before[key] >> 1
                return stop
        if c == 34:
            stop = text_end(p + 1, end)
            if stop == NULL:
                return NULL
            kind[0] = TEXTS
            out[0] = intern(&self.strings, p + 1, stop - p - 1)
            stop += 1
        elif c == 45 or is_digit(c):
            q = p + 1 if c == 45 else p
            stop = q
            while is_digit(stop[0]) and stop - q < 18:
                v = v * 10 + (stop[0] - 48)
                stop += 1
            kind[0] = INTS
            if (
                stop > q and not is_digit(stop[0]) and stop[0] != 46 and stop[0] != 101 and stop[0] != 69
                and (q[0] != 48 or stop - q == 1)
            ):
                out[0] = -v if c == 45 else v
                return stop
            stop = number_end(p)
            if stop == NULL:
                return NULL
            if plain_float(p, stop, &f):
                if stop - p < 19 or self.has_point(p, stop):
                    kind[0] = FLOATS
                    memcpy(out, &f, 8)
                    return stop
            kind[0] = odd_number(p, stop - p, out)
            return stop
        else:
            stop = value_end(p, end, 0)
            if stop == NULL:
                return NULL
            if c == 110:
                kind[0] = MISSING
                out[0] = 0
                return stop
            kind[0] = NESTED
            out[0] = intern(&self.strings, p, stop - p)
        if out[0] < 0:
            self.no_memory = True
            return NULL
        if c == 34 or c == 91:
            self.before[key] = out[0] << 1 | (c == 91)
        return stop

    cdef bint has_point(self, P p, P stop) noexcept nogil:
        while p < stop:
            if p[0] == 46:
                return True
            p += 1
        return False

    cdef int hold(self, size_t* held, uint32_t key, uint32_t kind, int64_t val) noexcept nogil:
        """Keep an argument until its event is whole; the last of several under one key stays."""
        cdef size_t k
        cdef void* room
        if self.seen[key] == self.stamp:
            k = self.where[key]
            self.held[k].kind = kind
            self.held[k].val = val
            return 0
        self.seen[key] = self.stamp
        self.where[key] = <uint32_t>held[0]
        if held[0] == self.held_cap:
            if self.held_cap >= MOST_ARGS:
                return -1
            room = realloc(self.held, self.held_cap * 2 * sizeof(Held))
            if room == NULL:
                self.no_memory = True
                return -1
            self.held = <Held*>room
            self.held_cap *= 2
        self.held[held[0]].key = key
        self.held[held[0]].kind = kind
        self.held[held[0]].val = val
        held[0] += 1
        return 0

    cdef P arguments(self, P p, P end, size_t* held) noexcept nogil:
        """Read the members of ``args``; the place is behind its opening brace."""
        cdef uint32_t before = ID_KEY, key, kind, guess
        cdef int64_t val, found
        cdef int64_t* ends
        cdef size_t n
        cdef P k, q
        p = blank(p)
        if p[0] == 125:
            return p + 1
        while True:
            if p[0] != 34:
                return NULL
            k = p + 1
            guess = self.guess[before]
            ends = <int64_t*>self.keys.ends.p
            n = <size_t>(ends[guess + 1] - ends[guess])
            if <size_t>(end - k) > n and k[n] == 34 and memcmp(k, self.keys.blob.p + ends[guess], n) == 0:
                key = guess
                q = k + n
            else:
                q = text_end(k, end)
                if q == NULL:
                    return NULL
                found = self.key_of(k, q - k)
                if found < 0:
                    self.no_memory = found == -1
                    return NULL
                key = <uint32_t>found
                self.guess[before] = key
            before = key
            p = blank(q + 1)
            if p[0] != 58:
                return NULL
            p = self.value(blank(p + 1), end, key, &kind, &val)
            if p == NULL or self.hold(held, key, kind, val) < 0:
                return NULL
            p = blank(p)
            if p[0] == 44:
                p = blank(p + 1)
            elif p[0] == 125:
                return p + 1
            else:
                return NULL

    cdef P token(self, P p, P end, int32_t* out, Last* last) noexcept nogil:
        """Read a process or thread id: the text or the number as written."""
        cdef P stop, start = p + (p[0] == 34)
        cdef size_t n = last.n
        if n and <size_t>(end - start) > n and memcmp(start, last.text, n) == 0 and (p[0] == 34) == last.quoted:
            stop = start + n
            if last.quoted:
                if stop[0] == 34:
                    out[0] = last.place
                    return stop + 1
            elif stop[0] == 44 or stop[0] == 125 or stop[0] <= 32:
                out[0] = last.place
                return stop
        if p[0] == 34:
            stop = text_end(start, end)
            if stop == NULL:
                return NULL
            n = stop - start
            stop += 1
        else:
            stop = value_end(p, end, 0)
            if stop == NULL:
                return NULL
            n = stop - start
            if p[0] == 110:
                out[0] = -1
                return stop
        out[0] = intern(&self.strings, start, n)
        if out[0] < 0:
            self.no_memory = True
            return NULL
        last.n = 0
        if n <= sizeof(last.text):
            memcpy(last.text, start, n)
            last.n = n
            last.quoted = p[0] == 34
            last.place = out[0]
        return stop

    cdef Field field(self, P k, size_t n) noexcept nogil:
        """Return which field of an event a key is."""
        cdef size_t j
        if n == 2:
            if k[0] == 116 and k[1] == 115:
                return F_TS
            if k[0] == 112 and k[1] == 104:
                return F_PH
            if k[0] == 105 and k[1] == 100:
                return F_ID
            if k[0] == 98 and k[1] == 112:
                return F_BP
        elif n == 3:
            if k[0] == 100 and k[1] == 117 and k[2] == 114:
                return F_DUR
            if k[0] == 112 and k[1] == 105 and k[2] == 100:
                return F_PID
            if k[0] == 116 and k[1] == 105 and k[2] == 100:
                return F_TID
            if k[0] == 99 and k[1] == 97 and k[2] == 116:
                return F_CAT
        elif n == 4:
            if k[0] == 110 and k[1] == 97 and k[2] == 109 and k[3] == 101:
                return F_NAME
            if k[0] == 97 and k[1] == 114 and k[2] == 103 and k[3] == 115:
                return F_ARGS
        for j in range(n):
            if k[j] == 92:
                return <Field>escaped_field(k, n)
        return F_OTHER

    cdef P event(self, P p, P end) noexcept nogil:
        """Read one event that begins here; return the place behind it, NULL where it is not whole or not plain."""
        cdef int32_t cat = -1, name = -1, pid = -1, tid = -1
        cdef uint8_t ph = 0
        cdef int64_t ts = ABSENT, dur = ABSENT, id_val = 0, bp_val = 0
        cdef uint32_t id_kind = MISSING, bp_kind = MISSING
        cdef size_t held = 0
        cdef bint odd_args = False
        cdef int64_t text_times = self.text_times
        cdef Field which
        cdef P k, q
        self.stamp += 1
        p = blank(p + 1)
        if p[0] != 125:
            while True:
                if p[0] != 34:
                    return NULL
                k = p + 1
                q = text_end(k, end)
                if q == NULL:
                    return NULL
                p = blank(q + 1)
                if p[0] != 58:
                    return NULL
                p = blank(p + 1)
                which = self.field(k, q - k)
                if which == F_TS:
                    p = self.time(p, end, &ts, True)
                elif which == F_DUR:
                    p = self.time(p, end, &dur, False)
                elif which == F_PID:
                    p = self.token(p, end, &pid, &self.last_pid)
                elif which == F_TID:
                    p = self.token(p, end, &tid, &self.last_tid)
                elif which == F_NAME or which == F_CAT:
                    q = value_end(p, end, 0)
                    if q == NULL:
                        return NULL
                    if which == F_NAME:
                        name = -1
                        if p[0] == 34:
                            name = intern(&self.strings, p + 1, q - p - 2)
                            self.no_memory |= name < 0
                    else:
                        cat = -1
                        if p[0] == 34:
                            cat = intern(&self.strings, p + 1, q - p - 2)
                            self.no_memory |= cat < 0
                    p = q
                elif which == F_PH:
                    q = value_end(p, end, 0)
                    if q == NULL:
                        return NULL
                    ph = p[1] if q - p == 3 and p[0] == 34 else odd_phase(p, q - p)
                    p = q
                elif which == F_ID:
                    p = self.value(p, end, ID_KEY, &id_kind, &id_val)
                elif which == F_BP:
                    p = self.value(p, end, BP_KEY, &bp_kind, &bp_val)
                elif which == F_ARGS:
                    self.stamp += 1
                    held = 0
                    if p[0] == 123:
                        odd_args = False
                        p = self.arguments(p + 1, end, &held)
                    else:
                        odd_args = True
                        p = value_end(p, end, 0)
                else:
                    p = value_end(p, end, 0)
                if p == NULL:
                    self.text_times = text_times
                    return NULL
                p = blank(p)
                if p[0] == 44:
                    p = blank(p + 1)
                elif p[0] == 125:
                    break
                else:
                    self.text_times = text_times
                    return NULL
        if id_kind != MISSING and self.hold(&held, ID_KEY, id_kind, id_val) < 0:
            return NULL
        if bp_kind != MISSING and self.hold(&held, BP_KEY, bp_kind, bp_val) < 0:
            return NULL
        if self.no_memory or self.store(ph, cat, name, pid, tid, ts, dur, held) < 0:
            self.no_memory = True
            return NULL
        self.odd_args += odd_args
        return p + 1

    cdef int store(
        self, uint8_t ph, int32_t cat, int32_t name, int32_t pid, int32_t tid, int64_t ts, int64_t dur, size_t held
    ) noexcept nogil:
        """Append one event to the columns; -1 where there is no memory."""
        cdef int32_t form = self.last_form, track = self.last_track
        cdef uint32_t row = <uint32_t>(self.ts.n // 8)
        cdef size_t k
        cdef uint32_t kind
        cdef Arg* arg
        cdef void* f = push(&self.form, 4)
        cdef void* n = push(&self.name, 4)
        cdef void* t = push(&self.track, 4)
        cdef void* s = push(&self.ts, 8)
        cdef void* d = push(&self.dur, 8)
        cdef void* r
        cdef void* v
        if ph != self.last_ph or cat != self.last_cat or form < 0:
            form = self.last_form = intern_pair(&self.forms, ph, cat)
            self.last_ph = ph
            self.last_cat = cat
        if pid != self.last_pair[0] or tid != self.last_pair[1] or track < 0:
            track = self.last_track = intern_pair(&self.tracks, pid, tid)
            self.last_pair[0] = pid
            self.last_pair[1] = tid
        if form < 0 or track < 0 or f == NULL or n == NULL or t == NULL or s == NULL or d == NULL or row >= <uint32_t>0x7FFFFFF0:
            return -1
        (<int32_t*>f)[0] = form
        (<int32_t*>n)[0] = name
        (<int32_t*>t)[0] = track
        (<int64_t*>s)[0] = ts
        (<int64_t*>d)[0] = dur
        for k in range(held):
            kind = self.held[k].kind
            if kind == MISSING:
                continue
            arg = &self.args[self.held[k].key]
            r = push(&arg.rows[kind], 4)
            v = push(&arg.vals[kind], WIDTH[kind])
            if r == NULL or v == NULL:
                return -1
            (<uint32_t*>r)[0] = row
            if kind >= TEXTS:
                (<int32_t*>v)[0] = <int32_t>self.held[k].val
            else:
                (<int64_t*>v)[0] = self.held[k].val
        return 0

    def feed(self, bytes text, Py_ssize_t start):
        """Take as many whole events as possible from a place on; return the place after them."""
        cdef P base = <P>PyBytes_AS_STRING(text)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
        if not 0 <= start <= size:
            raise ValueError("the start lies outside the text")
        cdef P end = base + size, p = base + start, q
        with nogil:
            while True:
                q = blank(p)
                if q[0] != 123:
                    break
                q = self.event(q, end)
                if q == NULL:
                    break
                p = q
                q = blank(q)
                if q[0] != 44:
                    break
                q = blank(q + 1)
                if q[0] != 123:
                    break
                p = q
        if self.no_memory:
            raise MemoryError
        return p - base

    def take(self, bytes text):
        """Take one event given alone; return whether it could be read."""
        cdef P base = <P>PyBytes_AS_STRING(text)
        cdef P end = base + PyBytes_GET_SIZE(text), p = blank(base)
        if p[0] != 123:
            return False
        p = self.event(p, end)
        if self.no_memory:
            raise MemoryError
        return p != NULL and blank(p) == end

    def absorb(self, CompiledScanner other):
        """Append the events of another scanner, whose events come later in the file; the other is empty afterwards."""
        cdef int failed
        with nogil:
            failed = self.append_all(other)
        if failed:
            raise MemoryError
        self.repairs.update(other.repairs)
        self.odd_args += other.odd_args
        self.text_times += other.text_times
        self.huge_times += other.huge_times
        self.fraction |= other.fraction

    cdef int append_all(self, CompiledScanner other) noexcept nogil:
        cdef size_t strings = other.strings.ends.n // 8 - 1, keys = other.keys.ends.n // 8 - 1, k
        cdef int32_t* texts = <int32_t*>malloc((strings + 1) * 4)
        cdef int32_t rows = <int32_t>(self.ts.n // 8)
        cdef int failed = -1
        if texts != NULL and <size_t>rows + other.ts.n // 8 < <size_t>0x7FFFFFF0:
            texts[0] = -1
            failed = map_texts(&self.strings, &other.strings, texts + 1)
            failed |= append_pairs(&self.form, &other.form, &self.forms, &other.forms, texts + 1, True)
            failed |= append_pairs(&self.track, &other.track, &self.tracks, &other.tracks, texts + 1, False)
            failed |= append_mapped(&self.name, &other.name, texts + 1)
            failed |= append_plain(&self.ts, &other.ts)
            failed |= append_plain(&self.dur, &other.dur)
            for k in range(keys):
                if not failed:
                    failed |= self.append_key(other, k, rows, texts + 1)
        free(texts)
        return failed

    cdef int append_key(self, CompiledScanner other, size_t k, int32_t rows, int32_t* texts) noexcept nogil:
        cdef int64_t* ends = <int64_t*>other.keys.ends.p
        cdef int64_t key = self.key_of(<P>other.keys.blob.p + ends[k], <size_t>(ends[k + 1] - ends[k]))
        cdef int kind, failed = 0
        cdef Arg* mine
        cdef Arg* theirs = &other.args[k]
        if key < 0:
            return -1
        mine = &self.args[key]
        for kind in range(4):
            failed |= append_shifted(&mine.rows[kind], &theirs.rows[kind], rows)
            if kind < TEXTS:
                failed |= append_plain(&mine.vals[kind], &theirs.vals[kind])
            else:
                failed |= append_mapped(&mine.vals[kind], &theirs.vals[kind], texts)
        return failed

    def finish(self, dict header):
        """Return the columns; the scanner is empty afterwards."""
        cdef size_t k, count = self.keys.ends.n // 8 - 1
        cdef int kind
        cdef int64_t* ends = <int64_t*>self.keys.ends.p
        args = {}
        for k in range(count):
            parts = {}
            for kind in range(4):
                if self.args[k].rows[kind].n:
                    rows = array_of(&self.args[k].rows[kind], np.int32)
                    parts[("ints", "floats", "texts", "nested")[kind]] = (
                        rows, array_of(&self.args[k].vals[kind], WIDTHS[kind])
                    )
            if parts:
                key = key_text(self.keys.blob.p[ends[k]:ends[k + 1]])
                column = ArgColumn(**parts)
                args[key] = merged(args[key], column) if key in args else column
        if self.odd_args:
            self.repairs["odd_args"] += self.odd_args
        if self.text_times:
            self.repairs["text_times"] += self.text_times
        blob = self.strings.blob.p[:self.strings.blob.n] if self.strings.blob.n else b""
        return Scanned(
            form=array_of(&self.form, np.int32),
            forms=pairs_of(&self.forms),
            name=array_of(&self.name, np.int32),
            track=array_of(&self.track, np.int32),
            tracks=pairs_of(&self.tracks),
            ts_ns=array_of(&self.ts, np.int64),
            dur_ns=array_of(&self.dur, np.int64),
            args=args,
            strings=Strings(blob, array_of(&self.strings.ends, np.int64)),
            header=header,
            repairs=self.repairs,
            whole_numbers=not self.fraction,
            huge_times=self.huge_times,
        )


cdef object pairs_of(Table* t):
    """Return the pairs of a table, int64 (pairs, 2)."""
    return array_of(&t.blob, np.int32).reshape(-1, 2).astype(np.int64)

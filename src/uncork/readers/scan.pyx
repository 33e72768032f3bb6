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
from uncork.readers.selection import merged
from uncork.readers.tokens import key_text, number_of, time_of

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
    ROOT = 0
    LOOSE = 1
    MOST_NODES = 4096
    MOST_SIBLINGS = 24
    LONGEST_LITERAL = 240
    LITERAL_BYTES = 1 << 17

cdef enum Field:
    F_OTHER, F_PH, F_CAT, F_NAME, F_PID, F_TID, F_TS, F_DUR, F_ID, F_BP, F_ARGS, F_ARG, F_PH_IS, F_CAT_IS, F_END

cdef enum Where:
    AT_START, IN_EVENT, IN_ARGS

include "tables.pxi"
include "tokens.pxi"


cdef struct Node:
    # What may stand between two values of an event: a literal, and what it leads to. Events of one kind are written
    # with the same keys and blanks, so a tree of these foretells nearly every literal; the values are all that is read.
    uint32_t literal
    uint32_t n
    uint32_t key
    int32_t child
    int32_t sibling
    int32_t guess
    uint8_t field
    uint8_t where
    uint8_t opens_args
    uint8_t ph
    int32_t cat
    int64_t before  # the text or nested value that stood here last: its index, doubled, plus whether it is nested or quoted
    int32_t form, form_cat
    int32_t track, track_pid, track_tid
    uint8_t form_ph


cdef struct Held:
    uint32_t key
    uint32_t kind
    int64_t val


cdef struct Pending:
    # A text whose index is looked up when its event is whole: until then its place in the table comes into the cache.
    P p
    size_t n
    uint64_t hash
    int64_t* before
    int32_t place
    bint nested


cdef struct Arg:
    Part parts[4]


cdef class Block:
    """Memory that a column lies in, freed with the last array that looks at it."""

    cdef void* p
    cdef Py_ssize_t n

    def __dealloc__(self):
        free(self.p)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.p, self.n, 0, flags)


cdef object array_of(void** p, size_t n, object dtype):
    """Return some bytes of a column as an array and let go of it."""
    cdef Block block
    if n == 0:
        free(p[0])
        p[0] = NULL
        return np.empty(0, dtype)
    block = Block.__new__(Block)
    block.p = realloc(p[0], n)
    if block.p == NULL:
        block.p = p[0]
    block.n = <Py_ssize_t>n
    p[0] = NULL
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
    cdef Rows rows
    cdef Arg* args
    cdef uint64_t* seen
    cdef uint32_t* where
    cdef size_t args_cap
    cdef Held* held
    cdef size_t held_cap
    cdef Pending* pending
    cdef size_t pending_n, pending_cap
    cdef uint64_t stamp
    cdef Node* nodes
    cdef char* literals
    cdef int32_t nodes_n
    cdef size_t literals_n
    cdef bint no_memory, fraction
    cdef int64_t odd_args, text_times, huge_times
    cdef object absorber
    cdef bint finished
    cdef Vec text_map, form_map, track_map

    def __cinit__(self):
        cdef uint64_t one = int.from_bytes(os.urandom(8), "little"), two = int.from_bytes(os.urandom(8), "little")
        self.repairs = Counter()
        self.held_cap = 256
        self.held = <Held*>malloc(self.held_cap * sizeof(Held))
        self.pending_cap = 256
        self.pending = <Pending*>malloc(self.pending_cap * sizeof(Pending))
        self.nodes = <Node*>malloc(MOST_NODES * sizeof(Node))
        self.literals = <char*>malloc(LITERAL_BYTES)
        if (
            table_open(&self.strings, one, two) < 0 or table_open(&self.keys, one, two) < 0
            or table_open(&self.forms, one, two) < 0 or table_open(&self.tracks, one, two) < 0
            or self.held == NULL or self.pending == NULL or self.nodes == NULL or self.literals == NULL
        ):
            raise MemoryError
        self.forget()
        if self.key_of(<P>b"@id", 3) != ID_KEY or self.key_of(<P>b"@bp", 3) != BP_KEY:
            raise MemoryError

    def __dealloc__(self):
        cdef size_t k
        cdef int kind
        table_close(&self.strings)
        table_close(&self.keys)
        table_close(&self.forms)
        table_close(&self.tracks)
        free(self.rows.form)
        free(self.rows.name)
        free(self.rows.track)
        free(self.rows.ts)
        free(self.rows.dur)
        for k in range(self.args_cap):
            for kind in range(4):
                free(self.args[k].parts[kind].rows)
                free(self.args[k].parts[kind].vals)
        free(self.args)
        free(self.seen)
        free(self.where)
        free(self.held)
        free(self.pending)
        free(self.nodes)
        free(self.literals)
        free(self.text_map.p)
        free(self.form_map.p)
        free(self.track_map.p)

    cdef void forget(self) noexcept nogil:
        """Begin the tree of literals anew."""
        memset(self.nodes, 0, 2 * sizeof(Node))
        memset(self.literals, 0, LITERAL_BYTES)
        self.nodes[ROOT].where = AT_START
        self.nodes_n = 2
        self.literals_n = 0

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
            self.args_cap = cap
        return key

    cdef P time(self, P p, P end, int64_t* out, bint start) noexcept nogil:
        """Read a time, whatever it is written as."""
        cdef P q, stop
        cdef bint fraction = False, text = p[0] == 34
        cdef int64_t huge = 0
        q = plain_time(p + text, end, out, &fraction)
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

    cdef P value(self, P p, P end, int64_t* before, uint32_t* kind, int64_t* out) noexcept nogil:
        """Read one value of ``args``."""
        cdef P stop
        cdef uint8_t c = p[0]
        cdef bint whole = False
        if c == 45 or is_digit(c):
            stop = plain_number(p, end, out, &whole)
            kind[0] = INTS if whole else FLOATS
            if stop == NULL:
                stop = number_end(p)
                if stop != NULL:
                    kind[0] = odd_number(p, stop - p, out)
            return stop
        if (c == 34 or c == 91) and before[0] >= 0:
            stop = self.same_as_before(p, end, before[0])
            if stop != NULL:
                kind[0] = NESTED if c == 91 else TEXTS
                out[0] = before[0] >> 1
                return stop
        if c == 34:
            stop = text_end(p + 1, end)
            if stop == NULL:
                return NULL
            kind[0] = TEXTS
            out[0] = self.later(p + 1, stop - p - 1, before, False)
            stop += 1
        else:
            stop = value_end(p, end, 0)
            if stop == NULL:
                return NULL
            if c == 110:
                kind[0] = MISSING
                out[0] = 0
                return stop
            kind[0] = NESTED
            out[0] = self.later(p, stop - p, before if c == 91 else NULL, True)
        return stop if out[0] < -1 else NULL

    cdef inline int64_t later(self, P p, size_t n, int64_t* before, bint nested) noexcept nogil:
        """Note a text to be looked up; return -2 for the first of an event, -3 for the second …; -1 without memory."""
        cdef Pending* one
        cdef void* room
        if self.pending_n == self.pending_cap:
            room = realloc(self.pending, self.pending_cap * 2 * sizeof(Pending))
            if room == NULL:
                self.no_memory = True
                return -1
            self.pending = <Pending*>room
            self.pending_cap *= 2
        one = &self.pending[self.pending_n]
        one.p = p
        one.n = n
        one.hash = hashed(p, n, self.strings.one, self.strings.two)
        one.before = before
        one.nested = nested
        soon(&self.strings.slots[one.hash & self.strings.mask])
        self.pending_n += 1
        return -1 - <int64_t>self.pending_n

    cdef int look_up(self) noexcept nogil:
        """Find the indices of the event's texts; -1 where there is no memory."""
        cdef size_t k
        cdef Pending* one
        cdef Table* t = &self.strings
        for k in range(self.pending_n):
            soon(t.blob.p + t.slots[self.pending[k].hash & t.mask].at)
        for k in range(self.pending_n):
            one = &self.pending[k]
            one.place = intern_hashed(t, one.p, one.n, one.hash)
            if one.place < 0:
                return -1
            if one.before != NULL:
                one.before[0] = <int64_t>one.place << 1 | one.nested
        return 0

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

    cdef P token(self, P p, P end, int32_t* out, int64_t* before) noexcept nogil:
        """Read a process or thread id: the text or the number as written."""
        cdef bint quoted = p[0] == 34
        cdef P stop, start = p + quoted
        cdef int64_t* ends = <int64_t*>self.strings.ends.p
        cdef int64_t place = before[0] >> 1, n
        if place >= 0 and (before[0] & 1) == quoted:
            n = ends[place + 1] - ends[place]
            if end - start > n and memcmp(start, self.strings.blob.p + ends[place], n) == 0:
                stop = start + n
                if stop[0] == 34 if quoted else (stop[0] == 44 or stop[0] == 125 or stop[0] <= 32):
                    out[0] = <int32_t>place
                    return stop + quoted
        if quoted:
            stop = text_end(start, end)
            n = stop - start
        else:
            stop = value_end(p, end, 0)
            n = stop - start
            if stop != NULL and p[0] == 110:
                out[0] = -1
                return stop
        if stop == NULL:
            return NULL
        out[0] = intern(&self.strings, start, n)
        if out[0] < 0:
            self.no_memory = True
            return NULL
        before[0] = <int64_t>out[0] << 1 | quoted
        return stop + quoted

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

    cdef inline int32_t foretold(self, P p, P end, int32_t node) noexcept nogil:
        """Return which known literal stands here, 0 if none."""
        cdef Node* nodes = self.nodes
        cdef int32_t c = nodes[node].guess
        if c and <size_t>(end - p) >= nodes[c].n + 8 and stands(p, <P>self.literals + nodes[c].literal, nodes[c].n):
            return c
        c = nodes[node].child
        while c:
            if <size_t>(end - p) >= nodes[c].n + 8 and stands(p, <P>self.literals + nodes[c].literal, nodes[c].n):
                nodes[node].guess = c
                return c
            c = nodes[c].sibling
        return 0

    cdef P find(self, P p, P end, int32_t parent, int32_t* found) noexcept nogil:
        """Read on from a value to the next one and add the way to the tree; return the place, NULL where it is not plain."""
        cdef P start = p, k, q
        cdef uint8_t where = self.nodes[parent].where, ph = 0
        cdef int32_t cat = -1
        cdef bint just_opened = where == AT_START, opens_args = False
        cdef Field which
        cdef int64_t key = 0
        if just_opened:
            where = IN_EVENT
            p += 1
        while True:
            p = blank(p)
            if p[0] == 125:
                p += 1
                if where == IN_EVENT:
                    which = F_END
                    break
                where = IN_EVENT
                just_opened = False
                continue
            if not just_opened:
                if p[0] != 44:
                    return NULL
                p = blank(p + 1)
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
            if where == IN_ARGS:
                key = self.key_of(k, q - k)
                if key < 0:
                    self.no_memory = key == -1
                    return NULL
                which = F_ARG
                break
            which = self.field(k, q - k)
            if which != F_ARGS or p[0] != 123:
                break
            where = IN_ARGS
            opens_args = just_opened = True
            p += 1
        if p[0] == 34 and (which == F_PH or which == F_CAT):
            q = text_end(p + 1, end)
            if q != NULL and which == F_PH and q - p == 2:
                which = F_PH_IS
                ph = p[1]
                p = q + 1
            elif q != NULL and which == F_CAT and q - p < 64:
                which = F_CAT_IS
                cat = intern(&self.strings, p + 1, q - p - 1)
                self.no_memory |= cat < 0
                p = q + 1
        if which == F_ARGS or which == F_PH or which == F_CAT:
            parent = LOOSE  # its literal would be the beginning of others'
        found[0] = self.remember(start, p - start, parent)
        cdef Node* node = &self.nodes[found[0]]
        node.key = <uint32_t>key
        node.field = which
        node.where = where
        node.opens_args = opens_args
        node.ph = ph
        node.cat = cat
        node.before = node.form = node.track = -1
        return p

    cdef int32_t remember(self, P p, size_t n, int32_t parent) noexcept nogil:
        """Return a new node of the tree for a literal, the loose one where there is no room."""
        cdef int32_t c = self.nodes[parent].child, siblings = 0
        while c:
            siblings += 1
            c = self.nodes[c].sibling
        if (
            parent == LOOSE or n > LONGEST_LITERAL or siblings >= MOST_SIBLINGS or self.nodes_n >= MOST_NODES
            or self.literals_n + n + 8 > LITERAL_BYTES
        ):
            return LOOSE
        c = self.nodes_n
        self.nodes_n += 1
        memset(&self.nodes[c], 0, sizeof(Node))
        memcpy(self.literals + self.literals_n, p, n)
        self.nodes[c].literal = <uint32_t>self.literals_n
        self.nodes[c].n = <uint32_t>n
        self.nodes[c].sibling = self.nodes[parent].child
        self.nodes[parent].child = self.nodes[parent].guess = c
        self.literals_n += n
        return c

    cdef P event(self, P p, P end) noexcept nogil:
        """Read one event that begins here; return the place behind it, NULL where it is not whole or not plain."""
        cdef int32_t cat = -1, name = -1, pid = -1, tid = -1, c, node = ROOT
        cdef uint8_t ph = 0
        cdef int64_t ts = ABSENT, dur = ABSENT, id_val = 0, bp_val = 0, val = 0
        cdef uint32_t id_kind = MISSING, bp_kind = MISSING, kind = MISSING
        cdef size_t held = 0
        cdef bint odd_args = False
        cdef int64_t text_times = self.text_times, huge_times = self.huge_times
        cdef Node* at
        cdef P q
        if self.nodes_n >= MOST_NODES:
            self.forget()
        self.stamp += 1
        self.pending_n = 0
        while True:
            c = self.foretold(p, end, node)
            if c:
                p += self.nodes[c].n
                if p[0] <= 32:
                    p = blank(p)  # a known literal may be the beginning of a longer one, with more blanks
            else:
                p = self.find(p, end, node, &c)
                if p == NULL:
                    break
            node = c
            at = &self.nodes[c]
            if at.opens_args:
                self.stamp += 1
                held = 0
                odd_args = False
            if at.field == F_ARG:
                p = self.value(p, end, &at.before, &kind, &val)
                if p == NULL or self.hold(&held, at.key, kind, val) < 0:
                    break
            elif at.field == F_PH_IS:
                ph = at.ph
            elif at.field == F_CAT_IS:
                cat = at.cat
            elif at.field == F_NAME:
                p = self.text(p, end, &name, &at.before)
            elif at.field == F_PID:
                p = self.token(p, end, &pid, &at.before)
            elif at.field == F_TID:
                p = self.token(p, end, &tid, &at.before)
            elif at.field == F_TS:
                p = self.time(p, end, &ts, True)
            elif at.field == F_DUR:
                p = self.time(p, end, &dur, False)
            elif at.field == F_END:
                if id_kind != MISSING and self.hold(&held, ID_KEY, id_kind, id_val) < 0:
                    break
                if bp_kind != MISSING and self.hold(&held, BP_KEY, bp_kind, bp_val) < 0:
                    break
                if self.no_memory or self.look_up() < 0 or self.store(at, ph, cat, name, pid, tid, ts, dur, held) < 0:
                    self.no_memory = True
                    break
                self.odd_args += odd_args
                return p
            elif at.field == F_ID:
                p = self.value(p, end, &at.before, &id_kind, &id_val)
            elif at.field == F_BP:
                p = self.value(p, end, &at.before, &bp_kind, &bp_val)
            elif at.field == F_CAT:
                p = self.text(p, end, &cat, &at.before)
            elif at.field == F_PH:
                q = value_end(p, end, 0)
                if q != NULL:
                    ph = p[1] if q - p == 3 and p[0] == 34 else odd_phase(p, q - p)
                p = q
            else:
                if at.field == F_ARGS:
                    self.stamp += 1
                    held = 0
                    odd_args = True
                p = value_end(p, end, 0)
            if p == NULL:
                break
        self.text_times = text_times
        self.huge_times = huge_times
        return NULL

    cdef P text(self, P p, P end, int32_t* out, int64_t* before) noexcept nogil:
        """Read a name or category; anything but a text is none."""
        cdef P stop
        out[0] = -1
        if p[0] != 34:
            return value_end(p, end, 0)
        if before[0] >= 0:
            stop = self.same_as_before(p, end, before[0])
            if stop != NULL:
                out[0] = <int32_t>(before[0] >> 1)
                return stop
        stop = text_end(p + 1, end)
        if stop == NULL:
            return NULL
        out[0] = <int32_t>self.later(p + 1, stop - p - 1, before, False)
        return stop + 1

    cdef int store(
        self, Node* at, uint8_t ph, int32_t cat, int32_t name, int32_t pid, int32_t tid, int64_t ts, int64_t dur, size_t held
    ) noexcept nogil:
        """Append one event to the columns; -1 where there is no memory."""
        cdef size_t row = self.rows.n, k
        cdef uint32_t kind
        cdef int64_t val
        cdef Part* part
        if cat < -1:
            cat = self.pending[-2 - cat].place
        if name < -1:
            name = self.pending[-2 - name].place
        if row == self.rows.cap and rows_widen(&self.rows, 1):
            return -1
        if at.form < 0 or ph != at.form_ph or cat != at.form_cat:
            at.form = intern_pair(&self.forms, ph, cat)
            at.form_ph = ph
            at.form_cat = cat
        if at.track < 0 or pid != at.track_pid or tid != at.track_tid:
            at.track = intern_pair(&self.tracks, pid, tid)
            at.track_pid = pid
            at.track_tid = tid
        if at.form < 0 or at.track < 0:
            return -1
        self.rows.form[row] = at.form
        self.rows.name[row] = name
        self.rows.track[row] = at.track
        self.rows.ts[row] = ts
        self.rows.dur[row] = dur
        self.rows.n = row + 1
        for k in range(held):
            kind = self.held[k].kind
            if kind == MISSING:
                continue
            part = &self.args[self.held[k].key].parts[kind]
            if part.n == part.cap and part_widen(part, 1, WIDTH[kind]):
                return -1
            part.rows[part.n] = <uint32_t>row
            val = self.held[k].val
            if kind >= TEXTS:
                if val < 0:
                    val = self.pending[-2 - val].place
                (<int32_t*>part.vals)[part.n] = <int32_t>val
            else:
                (<int64_t*>part.vals)[part.n] = val
            part.n += 1
        return 0

    cdef int check(self) except -1:
        """Stop where the columns have been handed out."""
        if self.finished:
            raise ValueError("the scanner has been finished")
        return 0

    def feed(self, bytes text, Py_ssize_t start):
        """Take as many whole events as possible from a place on; return the place after them."""
        cdef P base = <P>PyBytes_AS_STRING(text)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
        if not 0 <= start <= size:
            raise ValueError("the start lies outside the text")
        self.check()
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
        self.check()
        cdef P base = <P>PyBytes_AS_STRING(text)
        cdef P end = base + PyBytes_GET_SIZE(text), p = blank(base)
        if p[0] != 123:
            return False
        p = self.event(p, end)
        if self.no_memory:
            raise MemoryError
        return p != NULL and blank(p) == end

    def absorb(self, CompiledScanner other):
        """Append the events of another scanner, whose events come next in the file; the other goes on without them."""
        cdef int failed
        if other.absorber is None:
            other.absorber = self
        if other.absorber is not self or other is self:
            raise ValueError("a scanner is absorbed by one other only")
        self.check()
        other.check()
        with nogil:
            failed = self.append_all(other)
        if failed == -2:
            raise OverflowError("too many keys of args")
        if failed:
            raise MemoryError
        self.repairs.update(other.repairs)
        other.repairs.clear()
        self.odd_args += other.odd_args
        self.text_times += other.text_times
        self.huge_times += other.huge_times
        self.fraction |= other.fraction
        other.odd_args = other.text_times = other.huge_times = 0

    cdef int append_all(self, CompiledScanner other) noexcept nogil:
        cdef size_t keys = other.keys.ends.n // 8 - 1, k
        cdef int failed
        cdef int32_t* texts
        cdef uint32_t rows = <uint32_t>self.rows.n
        if map_texts(&self.strings, &other.strings, &other.text_map):
            return -1
        texts = <int32_t*>other.text_map.p + 1
        if (
            map_pairs(&self.forms, &other.forms, &other.form_map, texts, True)
            or map_pairs(&self.tracks, &other.tracks, &other.track_map, texts, False)
            or append_rows(
                &self.rows, &other.rows, texts, <int32_t*>other.form_map.p, <int32_t*>other.track_map.p
            )
        ):
            return -1
        for k in range(keys):
            failed = self.append_key(other, k, rows, texts)
            if failed:
                return failed
        return 0

    cdef int append_key(self, CompiledScanner other, size_t k, uint32_t rows, int32_t* texts) noexcept nogil:
        cdef int64_t* ends = <int64_t*>other.keys.ends.p
        cdef int64_t key = self.key_of(<P>other.keys.blob.p + ends[k], <size_t>(ends[k + 1] - ends[k]))
        cdef int kind
        if key < 0:
            return <int>key
        for kind in range(4):
            if append_part(
                &self.args[key].parts[kind], &other.args[k].parts[kind], WIDTH[kind], rows, texts if kind >= TEXTS else NULL
            ):
                return -1
        return 0

    def finish(self, dict header):
        """Return the columns; the scanner is of no use afterwards."""
        cdef size_t k, count = self.keys.ends.n // 8 - 1
        cdef int kind
        cdef int64_t* ends = <int64_t*>self.keys.ends.p
        cdef Rows* rows = &self.rows
        cdef Part* part
        self.check()
        self.finished = True
        args = {}
        for k in range(count):
            parts = {}
            for kind in range(4):
                part = &self.args[k].parts[kind]
                if part.n:
                    parts[("ints", "floats", "texts", "nested")[kind]] = (
                        array_of(<void**>&part.rows, part.n * 4, np.int32),
                        array_of(<void**>&part.vals, part.n * WIDTH[kind], WIDTHS[kind]),
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
            form=array_of(<void**>&rows.form, rows.n * 4, np.int32),
            forms=pairs_of(&self.forms),
            name=array_of(<void**>&rows.name, rows.n * 4, np.int32),
            track=array_of(<void**>&rows.track, rows.n * 4, np.int32),
            tracks=pairs_of(&self.tracks),
            ts_ns=array_of(<void**>&rows.ts, rows.n * 8, np.int64),
            dur_ns=array_of(<void**>&rows.dur, rows.n * 8, np.int64),
            args=args,
            strings=Strings(blob, array_of(<void**>&self.strings.ends.p, self.strings.ends.n, np.int64)),
            header=header,
            repairs=self.repairs,
            whole_numbers=not self.fraction,
            huge_times=self.huge_times,
        )


cdef object pairs_of(Table* t):
    """Return the pairs of a table, int64 (pairs, 2)."""
    return array_of(<void**>&t.blob.p, t.blob.n, np.int32).reshape(-1, 2).astype(np.int64)

"""Growing columns, and tables of distinct texts."""

cdef struct Vec:
    char* p
    size_t n
    size_t cap


cdef inline void* push(Vec* v, size_t size) noexcept nogil:
    """Return room for some more bytes, or NULL where there is no memory."""
    cdef size_t cap
    cdef void* p
    if v.n + size > v.cap:
        cap = v.cap + (v.cap >> 1) if v.cap else 4096
        if cap < v.n + size:
            cap = v.n + size
        p = realloc(v.p, cap)
        if p == NULL:
            return NULL
        v.p = <char*>p
        v.cap = cap
    v.n += size
    return v.p + v.n - size


cdef struct Slot:
    uint32_t place  # the text's index plus one, 0 where the slot is free
    uint32_t tag
    int64_t at  # where the text begins: beside the rest, so that a look costs one cache line, not two


cdef struct Table:
    Slot* slots
    size_t mask
    uint64_t one
    uint64_t two
    Vec ends
    Vec blob


cdef int table_open(Table* t, uint64_t one, uint64_t two) noexcept nogil:
    memset(t, 0, sizeof(Table))
    t.one = one
    t.two = two
    t.mask = 4095
    t.slots = <Slot*>calloc(4096, sizeof(Slot))
    cdef int64_t* first = <int64_t*>push(&t.ends, 8)
    if t.slots == NULL or first == NULL or push(&t.blob, 64) == NULL:
        return -1
    t.blob.n = 0  # never a null pointer, not even for texts of no bytes
    first[0] = 0
    return 0


cdef void table_close(Table* t) noexcept nogil:
    free(t.slots)
    free(t.ends.p)
    free(t.blob.p)
    memset(t, 0, sizeof(Table))


cdef int table_widen(Table* t) noexcept nogil:
    """Double the slots."""
    cdef size_t wide = (t.mask + 1) * 2, mask = wide - 1, k, j, count = t.ends.n // 8 - 1
    cdef Slot* slots = <Slot*>calloc(wide, sizeof(Slot))
    cdef int64_t* ends = <int64_t*>t.ends.p
    cdef uint64_t h
    if slots == NULL:
        return -1
    for k in range(count):
        h = hashed(<P>t.blob.p + ends[k], <size_t>(ends[k + 1] - ends[k]), t.one, t.two)
        j = h & mask
        while slots[j].place:
            j = (j + 1) & mask
        slots[j].place = <uint32_t>(k + 1)
        slots[j].tag = <uint32_t>(h >> 32)
        slots[j].at = ends[k]
    free(t.slots)
    t.slots = slots
    t.mask = mask
    return 0


cdef inline int32_t intern(Table* t, P p, size_t n) noexcept nogil:
    """Return the index of a text, a new one where it was not seen before; -1 where there is no memory."""
    return intern_hashed(t, p, n, hashed(p, n, t.one, t.two))


cdef int32_t intern_hashed(Table* t, P p, size_t n, uint64_t h) noexcept nogil:
    """Do the same for a text whose number is known."""
    cdef size_t j = h & t.mask, count
    cdef uint32_t s, tag = <uint32_t>(h >> 32)
    cdef int64_t* ends = <int64_t*>t.ends.p
    cdef void* room
    while True:
        s = t.slots[j].place
        if s == 0:
            break
        if (
            t.slots[j].tag == tag and t.slots[j].at + n <= t.blob.n and memcmp(t.blob.p + t.slots[j].at, p, n) == 0
            and <size_t>(ends[s] - t.slots[j].at) == n
        ):
            return <int32_t>(s - 1)
        j = (j + 1) & t.mask
    count = t.ends.n // 8 - 1
    if count >= <size_t>0x7FFFFFF0:
        return -1
    t.slots[j].at = <int64_t>t.blob.n
    if n:
        room = push(&t.blob, n)
        if room == NULL:
            return -1
        memcpy(room, p, n)
    room = push(&t.ends, 8)
    if room == NULL:
        return -1
    (<int64_t*>room)[0] = <int64_t>t.blob.n
    t.slots[j].place = <uint32_t>(count + 1)
    t.slots[j].tag = tag
    if (count + 1) * 2 > t.mask and table_widen(t) < 0:
        return -1
    return <int32_t>count


cdef inline int32_t intern_pair(Table* t, int32_t a, int32_t b) noexcept nogil:
    cdef int32_t pair[2]
    pair[0] = a
    pair[1] = b
    return intern(t, <P>pair, 8)


cdef struct Part:
    uint32_t* rows
    char* vals
    size_t n
    size_t cap


cdef int part_widen(Part* part, size_t more, size_t width) noexcept nogil:
    """Make room for some more rows and values."""
    cdef size_t cap = part.cap + (part.cap >> 1) if part.cap else 64
    cdef void* room
    if cap < part.n + more:
        cap = part.n + more
    room = realloc(part.rows, cap * 4)
    if room == NULL:
        return -1
    part.rows = <uint32_t*>room
    room = realloc(part.vals, cap * width)
    if room == NULL:
        return -1
    part.vals = <char*>room
    part.cap = cap
    return 0


cdef int append_part(Part* mine, Part* theirs, size_t width, uint32_t rows, int32_t* texts) noexcept nogil:
    """Put rows and values behind mine, the rows shifted, the indices of texts mapped; theirs are empty afterwards."""
    cdef size_t k, n = theirs.n
    cdef uint32_t* to
    cdef int32_t* values
    cdef int32_t* from_values = <int32_t*>theirs.vals
    if n == 0:
        return 0
    if mine.n + n > mine.cap and part_widen(mine, n, width):
        return -1
    to = mine.rows + mine.n
    for k in range(n):
        to[k] = theirs.rows[k] + rows
    if texts == NULL:
        memcpy(mine.vals + mine.n * width, theirs.vals, n * width)
    else:
        values = <int32_t*>mine.vals + mine.n
        for k in range(n):
            values[k] = texts[from_values[k]]
    mine.n += n
    theirs.n = 0
    return 0


cdef struct Rows:
    int32_t* form
    int32_t* name
    int32_t* track
    int64_t* ts
    int64_t* dur
    size_t n
    size_t cap


cdef int rows_widen(Rows* rows, size_t more) noexcept nogil:
    """Make room for some more events."""
    cdef size_t cap = rows.cap + (rows.cap >> 1) if rows.cap else 1024
    cdef void* room
    if rows.n + more >= <size_t>0x7FFFFFF0:
        return -1
    if cap < rows.n + more:
        cap = rows.n + more
    room = realloc(rows.form, cap * 4)
    if room == NULL:
        return -1
    rows.form = <int32_t*>room
    room = realloc(rows.name, cap * 4)
    if room == NULL:
        return -1
    rows.name = <int32_t*>room
    room = realloc(rows.track, cap * 4)
    if room == NULL:
        return -1
    rows.track = <int32_t*>room
    room = realloc(rows.ts, cap * 8)
    if room == NULL:
        return -1
    rows.ts = <int64_t*>room
    room = realloc(rows.dur, cap * 8)
    if room == NULL:
        return -1
    rows.dur = <int64_t*>room
    rows.cap = cap
    return 0


cdef int append_rows(Rows* mine, Rows* theirs, int32_t* texts, int32_t* forms, int32_t* tracks) noexcept nogil:
    """Put events behind mine, their indices mapped; theirs are empty afterwards."""
    cdef size_t k, n = theirs.n, at = mine.n
    if mine.n + n > mine.cap and rows_widen(mine, n):
        return -1
    for k in range(n):
        mine.form[at + k] = forms[theirs.form[k]]
        mine.name[at + k] = texts[theirs.name[k]]
        mine.track[at + k] = tracks[theirs.track[k]]
    if n:
        memcpy(mine.ts + at, theirs.ts, n * 8)
        memcpy(mine.dur + at, theirs.dur, n * 8)
    mine.n += n
    theirs.n = 0
    return 0


cdef int map_texts(Table* mine, Table* theirs, Vec* map) noexcept nogil:
    """Go on writing which of my indices each of their texts has; the first entry stands for -1."""
    cdef size_t k = map.n // 4, count = theirs.ends.n // 8
    cdef int64_t* ends = <int64_t*>theirs.ends.p
    cdef int32_t* room
    cdef int32_t place = -1
    while k < count:
        if k:
            place = intern(mine, <P>theirs.blob.p + ends[k - 1], <size_t>(ends[k] - ends[k - 1]))
            if place < 0:
                return -1
        room = <int32_t*>push(map, 4)
        if room == NULL:
            return -1
        room[0] = place
        k += 1
    return 0


cdef int map_pairs(Table* mine, Table* theirs, Vec* map, int32_t* texts, bint phases) noexcept nogil:
    """Go on writing which of my indices each of their pairs has."""
    cdef size_t k = map.n // 4, count = theirs.ends.n // 8 - 1
    cdef int32_t* pairs = <int32_t*>theirs.blob.p
    cdef int32_t* room
    cdef int32_t place
    while k < count:
        place = intern_pair(mine, pairs[2 * k] if phases else texts[pairs[2 * k]], texts[pairs[2 * k + 1]])
        room = <int32_t*>push(map, 4)
        if place < 0 or room == NULL:
            return -1
        room[0] = place
        k += 1
    return 0

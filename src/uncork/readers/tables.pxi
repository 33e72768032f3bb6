"""Growing columns, and tables of distinct texts."""

cdef uint64_t MUL1 = <uint64_t>0x9E3779B97F4A7C15
cdef uint64_t MUL2 = <uint64_t>0xff51afd7ed558ccd


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
    uint32_t place
    uint32_t tag


cdef struct Table:
    Slot* slots
    size_t mask
    uint64_t seed
    Vec ends
    Vec blob


cdef inline uint64_t hashed(P p, size_t n, uint64_t seed) noexcept nogil:
    cdef uint64_t h = seed ^ (n * MUL1), a = 0
    cdef uint32_t low, high
    cdef P last
    if n >= 8:
        last = p + n - 8
        while p < last:
            memcpy(&a, p, 8)
            h = (h ^ a) * MUL2
            h ^= h >> 32
            p += 8
        memcpy(&a, last, 8)
    elif n >= 4:
        memcpy(&low, p, 4)
        memcpy(&high, p + n - 4, 4)
        a = (<uint64_t>high << 32) | low
    elif n:
        a = (<uint64_t>p[0] << 16) | (<uint64_t>p[n >> 1] << 8) | p[n - 1]
    h = (h ^ a) * MUL2
    h ^= h >> 29
    h *= MUL1
    return h ^ (h >> 32)


cdef int table_open(Table* t, uint64_t seed) noexcept nogil:
    memset(t, 0, sizeof(Table))
    t.seed = seed
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
        h = hashed(<P>t.blob.p + ends[k], <size_t>(ends[k + 1] - ends[k]), t.seed)
        j = h & mask
        while slots[j].place:
            j = (j + 1) & mask
        slots[j].place = <uint32_t>(k + 1)
        slots[j].tag = <uint32_t>(h >> 32)
    free(t.slots)
    t.slots = slots
    t.mask = mask
    return 0


cdef int32_t intern(Table* t, P p, size_t n) noexcept nogil:
    """Return the index of a text, a new one where it was not seen before; -1 where there is no memory."""
    cdef uint64_t h = hashed(p, n, t.seed)
    cdef size_t j = h & t.mask, count
    cdef uint32_t s, tag = <uint32_t>(h >> 32)
    cdef int64_t* ends = <int64_t*>t.ends.p
    cdef void* room
    while True:
        s = t.slots[j].place
        if s == 0:
            break
        if t.slots[j].tag == tag and <size_t>(ends[s] - ends[s - 1]) == n and memcmp(t.blob.p + ends[s - 1], p, n) == 0:
            return <int32_t>(s - 1)
        j = (j + 1) & t.mask
    count = t.ends.n // 8 - 1
    if count >= <size_t>0x7FFFFFF0:
        return -1
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


cdef int map_texts(Table* mine, Table* theirs, int32_t* texts) noexcept nogil:
    """Write which of my indices each of their texts has."""
    cdef size_t k, count = theirs.ends.n // 8 - 1
    cdef int64_t* ends = <int64_t*>theirs.ends.p
    for k in range(count):
        texts[k] = intern(mine, <P>theirs.blob.p + ends[k], <size_t>(ends[k + 1] - ends[k]))
        if texts[k] < 0:
            return -1
    return 0


cdef int append_plain(Vec* mine, Vec* theirs) noexcept nogil:
    """Move a column's values behind mine."""
    cdef void* room
    if theirs.n:
        room = push(mine, theirs.n)
        if room == NULL:
            return -1
        memcpy(room, theirs.p, theirs.n)
    free(theirs.p)
    memset(theirs, 0, sizeof(Vec))
    return 0


cdef int append_mapped(Vec* mine, Vec* theirs, int32_t* texts) noexcept nogil:
    """Move a column of indices behind mine; ``texts[-1]`` is -1."""
    cdef size_t k, start = mine.n // 4, count = theirs.n // 4
    cdef int32_t* values
    if append_plain(mine, theirs):
        return -1
    values = <int32_t*>mine.p + start
    for k in range(count):
        values[k] = texts[values[k]]
    return 0


cdef int append_shifted(Vec* mine, Vec* theirs, int32_t rows) noexcept nogil:
    """Move a column of row numbers behind mine."""
    cdef size_t k, start = mine.n // 4, count = theirs.n // 4
    cdef int32_t* values
    if append_plain(mine, theirs):
        return -1
    values = <int32_t*>mine.p + start
    for k in range(count):
        values[k] += rows
    return 0


cdef int append_pairs(Vec* mine, Vec* theirs, Table* my_pairs, Table* their_pairs, int32_t* texts, bint phases) noexcept nogil:
    """Move a column of indices of pairs behind mine."""
    cdef size_t k, count = their_pairs.ends.n // 8 - 1
    cdef int32_t* pairs = <int32_t*>their_pairs.blob.p
    cdef int32_t* places = <int32_t*>malloc((count + 1) * 4)
    cdef int failed = 0
    if places == NULL:
        return -1
    places[0] = -1
    for k in range(count):
        places[k + 1] = intern_pair(my_pairs, pairs[2 * k] if phases else texts[pairs[2 * k]], texts[pairs[2 * k + 1]])
        if places[k + 1] < 0:
            failed = -1
    if not failed:
        failed = append_mapped(mine, theirs, places + 1)
    free(places)
    return failed

"""The tokens of JSON: where each ends, and what numbers mean."""

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define FIRST_MARKED(t) ((int)(__builtin_ctzll(t) >> 3))
    #else
    static int FIRST_MARKED(unsigned long long t) {
        unsigned char bytes[8]; int place;
        memcpy(bytes, &t, 8);
        for (place = 0; place < 7; place++) if (bytes[place] & 0x80) break;
        return place;
    }
    #endif
    """
    int FIRST_MARKED(uint64_t t) nogil

cdef uint64_t EACH = <uint64_t>0x0101010101010101
cdef uint64_t TOPS = <uint64_t>0x8080808080808080


cdef inline P blank(P p) noexcept nogil:
    while p[0] == 32 or p[0] == 10 or p[0] == 13 or p[0] == 9:
        p += 1
    return p


cdef inline bint is_digit(uint8_t c) noexcept nogil:
    return 48 <= c <= 57


cdef inline bint is_hex(uint8_t c) noexcept nogil:
    return 48 <= c <= 57 or 65 <= c <= 70 or 97 <= c <= 102


cdef inline P text_end(P p, P end) noexcept nogil:
    """Return the closing quote of a text whose inside begins here, NULL where it is no legal text."""
    cdef uint64_t x, y, z, t
    cdef uint8_t c
    while True:
        while end - p >= 8:
            memcpy(&x, p, 8)
            y = x ^ (EACH * 34)
            z = x ^ (EACH * 92)
            t = (((x - EACH * 32) & ~x) | ((y - EACH) & ~y) | ((z - EACH) & ~z)) & TOPS
            if t:
                p += FIRST_MARKED(t)
                break
            p += 8
        c = p[0]
        if c == 34:
            return p
        if c == 92:
            c = p[1]
            if c == 117:
                if not (is_hex(p[2]) and is_hex(p[3]) and is_hex(p[4]) and is_hex(p[5])):
                    return NULL
                p += 6
            elif c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116:
                p += 2
            else:
                return NULL
        elif c < 32:
            return NULL
        else:
            p += 1


cdef inline P number_end(P p) noexcept nogil:
    """Return the end of a JSON number, NULL where it is none."""
    if p[0] == 45:
        p += 1
    if p[0] == 48:
        p += 1
    elif is_digit(p[0]):
        while is_digit(p[0]):
            p += 1
    else:
        return NULL
    if p[0] == 46:
        p += 1
        if not is_digit(p[0]):
            return NULL
        while is_digit(p[0]):
            p += 1
    if p[0] == 101 or p[0] == 69:
        p += 1
        if p[0] == 43 or p[0] == 45:
            p += 1
        if not is_digit(p[0]):
            return NULL
        while is_digit(p[0]):
            p += 1
    return p


cdef inline P word_end(P p) noexcept nogil:
    """Return the end of true, false or null, NULL where it is none."""
    if p[0] == 116 and p[1] == 114 and p[2] == 117 and p[3] == 101:
        return p + 4
    if p[0] == 102 and p[1] == 97 and p[2] == 108 and p[3] == 115 and p[4] == 101:
        return p + 5
    if p[0] == 110 and p[1] == 117 and p[2] == 108 and p[3] == 108:
        return p + 4
    return NULL


cdef P value_end(P p, P end, int depth) noexcept nogil:
    """Return the end of any JSON value, NULL where it is none or too deep."""
    cdef uint8_t c = p[0], close
    if c == 34:
        p = text_end(p + 1, end)
        if p != NULL:
            p += 1
        return p
    if c == 45 or is_digit(c):
        return number_end(p)
    if c != 91 and c != 123:
        return word_end(p)
    if depth >= DEEPEST:
        return NULL
    close = c + 2
    p = blank(p + 1)
    if p[0] == close:
        return p + 1
    while True:
        if c == 123:
            if p[0] != 34:
                return NULL
            p = text_end(p + 1, end)
            if p == NULL:
                return NULL
            p = blank(p + 1)
            if p[0] != 58:
                return NULL
            p = blank(p + 1)
        p = value_end(p, end, depth + 1)
        if p == NULL:
            return NULL
        p = blank(p)
        if p[0] == 44:
            p = blank(p + 1)
        elif p[0] == close:
            return p + 1
        else:
            return NULL


cdef inline P plain_time(P p, int64_t* out, bint* fraction) noexcept nogil:
    """Read a decimal number of µs as ns; return its end, NULL where it is not of the plain kind."""
    cdef int64_t v = 0
    cdef int digits = 0
    cdef bint negative = p[0] == 45
    if negative:
        p += 1
    if p[0] == 48:
        p += 1
    else:
        while is_digit(p[0]):
            v = v * 10 + (p[0] - 48)
            digits += 1
            p += 1
            if digits > 15:
                return NULL
        if digits == 0:
            return NULL
    if is_digit(p[0]):
        return NULL
    v *= 1000
    if p[0] == 46:
        fraction[0] = True
        p += 1
        if not is_digit(p[0]):
            return NULL
        v += (p[0] - 48) * 100
        p += 1
        if is_digit(p[0]):
            v += (p[0] - 48) * 10
            p += 1
            if is_digit(p[0]):
                v += p[0] - 48
                p += 1
                if is_digit(p[0]):
                    if p[0] >= 53:
                        v += 1
                    while is_digit(p[0]):
                        p += 1
    if p[0] == 101 or p[0] == 69:
        return NULL
    out[0] = -v if negative else v
    return p


cdef double TENS[23]
cdef int _ten
for _ten in range(23):
    TENS[_ten] = 10.0 ** _ten


cdef inline bint plain_float(P p, P stop, double* out) noexcept nogil:
    """Read a short decimal exactly as the nearest double: its digits fit 53 bits and its power of ten is exact."""
    cdef uint64_t m = 0
    cdef int digits = 0, decimals = 0
    cdef bint negative = p[0] == 45, seen = False
    if negative:
        p += 1
    while p < stop:
        if p[0] == 46:
            seen = True
        elif is_digit(p[0]):
            m = m * 10 + (p[0] - 48)
            digits += 1
            if digits > 18:
                return False
            if seen:
                decimals += 1
        else:
            return False
        p += 1
    if m > (<uint64_t>1 << 53) or decimals > 22:
        return False
    out[0] = <double>m / TENS[decimals]
    if negative:
        out[0] = -out[0]
    return True

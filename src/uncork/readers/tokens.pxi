"""The tokens of JSON: where each ends, and what numbers mean."""

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define FAST_WORDS 1
    #else
    #define FAST_WORDS 0
    #endif
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    #if defined(__GNUC__)
    #define soon(p) __builtin_prefetch(p)
    #else
    #define soon(p) ((void)(p))
    #endif

    /* The first byte from p on that is a quote, a backslash or a control character, or one less than 16 bytes before
       the end, where no vector may be read any more. */
    static CYTHON_INLINE const uint8_t* plain_run(const uint8_t* p, const uint8_t* end) {
    #if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8(34), back = _mm_set1_epi8(92), most = _mm_set1_epi8(31);
        while (end - p >= 16) {
            __m128i x = _mm_loadu_si128((const __m128i*)p);
            __m128i odd = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, back)),
                                       _mm_cmpeq_epi8(_mm_min_epu8(x, most), x));
            int mask = _mm_movemask_epi8(odd);
            if (mask) {
                while (!(mask & 1)) { mask >>= 1; p++; }
                return p;
            }
            p += 16;
        }
    #else
        const uint64_t each = 0x0101010101010101ULL;
        while (end - p >= 8) {
            uint64_t x, y, z;
            memcpy(&x, p, 8);
            y = x ^ (each * 34);
            z = x ^ (each * 92);
            if ((((x - each * 32) & ~x) | ((y - each) & ~y) | ((z - each) & ~z)) & (each << 7)) break;
            p += 8;
        }
    #endif
        while (p < end && *p != 34 && *p != 92 && *p >= 32) p++;
        return p;
    }

    /* Whether a literal stands at p; both sides may be read to the end of the word of 8 bytes in which it ends. */
    static CYTHON_INLINE int stands(const uint8_t* p, const uint8_t* literal, size_t n) {
        uint64_t x, y;
        for (;;) {
            memcpy(&x, p, 8);
            memcpy(&y, literal, 8);
            if (n <= 8) break;
            if (x != y) return 0;
            p += 8; literal += 8; n -= 8;
        }
    #if FAST_WORDS
        return ((x ^ y) << (64 - 8 * n)) == 0;
    #else
        return memcmp(p, literal, n) == 0;
    #endif
    }

    /* Read up to 16 digits; returns the place behind them. */
    static CYTHON_INLINE const uint8_t* read_digits(const uint8_t* p, const uint8_t* end, uint64_t* value) {
        uint64_t v = 0;
        int k = 0;
    #if FAST_WORDS
        static const uint64_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
        int half;
        for (half = 0; half < 2 && end - p >= 8; half++) {
            uint64_t x, odd;
            int n = 8;
            memcpy(&x, p, 8);
            x ^= 0x3030303030303030ULL;
            odd = ((x + 0x7676767676767676ULL) | x) & 0x8080808080808080ULL;
            if (odd) {
                n = (int)(__builtin_ctzll(odd) >> 3);
                if (n == 0) break;
                x <<= 64 - 8 * n;
            }
            x = x * 10 + (x >> 8);
            x = ((x & 0x000000FF000000FFULL) * 0x000F424000000064ULL
                 + ((x >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL) >> 32;
            v = v * tens[n] + x;
            p += n;
            if (n < 8) { *value = v; return p; }
        }
        k = 8 * half;
    #endif
        for (; k < 16 && *p >= 48 && *p <= 57; k++) v = v * 10 + (*p++ - 48);
        *value = v;
        return p;
    }

    static CYTHON_INLINE uint64_t word_at(const uint8_t* p) { uint64_t x; memcpy(&x, p, 8); return x; }

    static CYTHON_INLINE uint64_t folded(uint64_t a, uint64_t b) {
    #if defined(__SIZEOF_INT128__)
        __uint128_t r = (__uint128_t)a * b;
        return (uint64_t)r ^ (uint64_t)(r >> 64);
    #else
        uint64_t h = (a ^ (b >> 32) ^ (b << 32)) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
        h = (h ^ b) * 0x9E3779B97F4A7C15ULL;
        return h ^ (h >> 29);
    #endif
    }

    /* A number for a text, not to be foreseen without the two secrets. */
    static CYTHON_INLINE uint64_t hashed(const uint8_t* p, size_t n, uint64_t one, uint64_t two) {
        uint64_t a, b, h = one, g = two;
        const uint8_t* last = p + n;
        if (n >= 16) {
            while (last - p > 32) {
                h = folded(word_at(p) ^ two, word_at(p + 8) ^ h);
                g = folded(word_at(p + 16) ^ one, word_at(p + 24) ^ g);
                p += 32;
            }
            if (last - p > 16) h = folded(word_at(p) ^ two, word_at(p + 8) ^ h);
            a = word_at(last - 16);
            b = word_at(last - 8);
        } else if (n >= 8) {
            a = word_at(p);
            b = word_at(last - 8);
        } else if (n >= 4) {
            uint32_t low, high;
            memcpy(&low, p, 4);
            memcpy(&high, last - 4, 4);
            a = low;
            b = high;
        } else {
            a = n ? ((uint64_t)p[0] << 16) | ((uint64_t)p[n >> 1] << 8) | last[-1] : 0;
            b = 0;
        }
        return folded(folded(a ^ two, b ^ h) ^ n, g ^ 0x9E3779B97F4A7C15ULL);
    }
    """
    void soon(const void* p) nogil
    P plain_run(P p, P end) nogil
    bint stands(P p, P literal, size_t n) nogil
    P read_digits(P p, P end, uint64_t* value) nogil
    uint64_t hashed(P p, size_t n, uint64_t one, uint64_t two) nogil


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
    cdef uint8_t c
    while True:
        p = plain_run(p, end)
        c = p[0]
        if c == 34:
            return p
        if c != 92:
            return NULL
        c = p[1]
        if c == 117:
            if not (is_hex(p[2]) and is_hex(p[3]) and is_hex(p[4]) and is_hex(p[5])):
                return NULL
            p += 6
        elif c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116:
            p += 2
        else:
            return NULL


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


cdef inline P plain_time(P p, P end, int64_t* out, bint* fraction) noexcept nogil:
    """Read a decimal number of µs as ns; return its end, NULL where it is not of the plain kind."""
    cdef uint64_t digits = 0
    cdef int64_t v
    cdef bint negative = p[0] == 45
    cdef P start = p + negative
    p = read_digits(start, end, &digits)
    if p == start or p - start > 15 or is_digit(p[0]) or (start[0] == 48 and p - start > 1):
        return NULL
    v = <int64_t>digits * 1000
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


cdef double TENS[19]
cdef uint64_t WHOLE_TENS[19]
cdef int _power
WHOLE_TENS[0] = 1
for _power in range(1, 19):
    WHOLE_TENS[_power] = WHOLE_TENS[_power - 1] * 10
for _power in range(19):
    TENS[_power] = <double>WHOLE_TENS[_power]


cdef inline P plain_number(P p, P end, int64_t* out, bint* whole) noexcept nogil:
    """Read a number of few digits exactly, as an integer or as the bits of the nearest double; NULL where it is longer.

    A double is exact where the digits fit 53 bits and the power of ten is exact too.
    """
    cdef uint64_t v = 0, part = 0
    cdef double f
    cdef bint negative = p[0] == 45
    cdef P start = p + negative, point
    cdef Py_ssize_t decimals
    p = read_digits(start, end, &v)
    if p == start or (start[0] == 48 and p - start > 1):
        return NULL
    whole[0] = p[0] != 46
    if whole[0]:
        out[0] = -<int64_t>v if negative else <int64_t>v
    else:
        point = p + 1
        p = read_digits(point, end, &part)
        decimals = p - point
        if decimals == 0 or (point - 1 - start) + decimals > 18:
            return NULL
        v = v * WHOLE_TENS[decimals] + part
        if v > (<uint64_t>1 << 53):
            return NULL
        f = <double>v / TENS[decimals]
        if negative:
            f = -f
        memcpy(out, &f, 8)
    if is_digit(p[0]) or p[0] == 46 or p[0] == 101 or p[0] == 69:
        return NULL
    return p

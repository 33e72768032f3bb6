# cython: boundscheck=False, wraparound=False, cdivision=True
"""The nesting sweep: who encloses whom among slices in order. `uncork.nesting` has the same in numpy."""

import numpy as np

from libc.stdint cimport int64_t


def levels(const int64_t[::1] track, const int64_t[::1] start_ns, const int64_t[::1] end_ns):
    """Return (parent, depth) of slices in order of track and start; depth is how many earlier ones are still open.

    The parent is the last earlier slice one level up. Slices may end in any order: the ends of those that are open
    lie in a heap, so that broken recordings take no longer than sound ones.
    """
    cdef Py_ssize_t count = track.shape[0], index, open_count = 0
    parents, depths = np.empty(count, np.int64), np.empty(count, np.int64)
    ends, lasts = np.empty(count, np.int64), np.empty(count, np.int64)
    cdef int64_t[::1] parent = parents, depth = depths, heap = ends, last = lasts
    cdef int64_t start
    with nogil:
        for index in range(count):
            start = start_ns[index]
            if index and track[index] != track[index - 1]:
                open_count = 0
            while open_count and heap[0] <= start:
                open_count -= 1
                sink(heap, open_count, heap[open_count])
            depth[index] = open_count
            parent[index] = last[open_count - 1] if open_count else -1
            last[open_count] = index
            # A slice without length still encloses nothing and ends after it began.
            rise(heap, open_count, end_ns[index] if end_ns[index] > start else start + 1)
            open_count += 1
    return parents, depths


cdef void sink(int64_t[::1] heap, Py_ssize_t size, int64_t end) noexcept nogil:
    """Put an end in the place of the earliest."""
    cdef Py_ssize_t place = 0, child = 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= end:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = end


cdef void rise(int64_t[::1] heap, Py_ssize_t size, int64_t end) noexcept nogil:
    """Add an end."""
    cdef Py_ssize_t place = size, above = (size - 1) // 2
    while place and heap[above] > end:
        heap[place] = heap[above]
        place, above = above, (above - 1) // 2
    heap[place] = end

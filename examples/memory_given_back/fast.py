"""The same job; the C library keeps what was freed, as with two variables set in front of the command."""

import ctypes

from slow import train

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Numbers of glibc's malloc.h for ``MALLOC_TRIM_THRESHOLD_`` and ``MALLOC_MMAP_MAX_``."""

if __name__ == "__main__":
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    train()

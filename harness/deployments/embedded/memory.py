"""Keeping freed memory in the process, because every step needs it again.

A step frees some tens of megabytes of logits. glibc hands so much back to the system at once and gets it anew, page by
page, at the next step: thousands of page faults, which made steps with masks 15% slower than those without.
"""

import ctypes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST_IN_HEAP = 32 << 20
"""The largest that glibc takes for it."""
_KEPT = 1 << 30


def keep_freed_memory() -> None:
    """Ask the allocator of this process to keep up to a gigabyte. Without glibc nothing changes."""
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):
        allocator.mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        allocator.mallopt(_M_TRIM_THRESHOLD, _KEPT)

"""Memory that all contestants share: page-aligned and in huge pages, as a session's own is."""
import ctypes
import mmap

HUGE_PAGE = 1 << 21


def floats(elements):
    """A ctypes array of zeros, with room for whole tiles of 1024 elements."""
    return (ctypes.c_float * padded(elements)).from_buffer(memory(4 * padded(elements)))


def padded(elements):
    return (elements + 1023) // 1024 * 1024


def memory(size):
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= 2 * HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def address(array):
    return ctypes.addressof(array)

"""Structs, numbers and prototypes of `cinch_sync.h` and `cinch_transport.h`. `tests/python/abi_test.py` compares them with the headers."""
import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List

from ._abi import Tensor, declare_status

EXACT, OFF = -1, -2
LENGTHS = {"auto": 0, "padded": 1, "exchanged": 2}
SITES = ("worker", "hop", "owner", "return")
NCCL_ID_BYTES = 128
STORE_NOTHING = c_size_t(-1).value

StorePut = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t)
StoreGet = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, POINTER(c_size_t), c_uint32)
StoreErrorText = CFUNCTYPE(None, c_void_p, c_int32, c_void_p, c_size_t)


TakesLine = CFUNCTYPE(None, c_void_p, c_char_p)


class StoreCalls(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("context", c_void_p), ("put", StorePut), ("get", StoreGet), ("error_text", StoreErrorText)]


class UcxOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("rendezvous", c_char_p),
        ("store", POINTER(StoreCalls)),
        ("secret", c_char_p),
        ("secret_bytes", c_size_t),
        ("interface_name", c_char_p),
        ("timeout_ms", c_uint32),
        ("transports", c_char_p),
    ]


class NcclOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device_number", c_int32),
        ("is_exact", c_int32),
        ("timeout_ms", c_uint32),
        ("library", c_char_p),
    ]


class PolicyTensor(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("shape", POINTER(c_int64)), ("num_dims", c_int32)]


class PolicyChoice(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("program", c_int32), ("priority", c_int32), ("plan", c_char_p), ("piece_bytes", c_uint64)]


class PolicyProgram(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("program", c_char_p), ("bindings", POINTER(c_char_p)), ("num_bindings", c_size_t)]


class SyncTensor(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("rows", c_int64),
        ("columns", c_int64),
        ("program", c_int32),
        ("priority", c_int32),
        ("part_ends", POINTER(c_int64)),
        ("plan", c_char_p),
        ("piece_bytes", c_uint64),
    ]


class SyncOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("plan", c_char_p),
        ("piece_bytes", c_uint64),
        ("lengths", c_int32),
        ("ranks_per_machine", c_uint32),
        ("servers", POINTER(c_uint32)),
        ("num_servers", c_size_t),
        ("first_step", c_uint64),
        ("seed", c_uint64),
        ("threads", c_uint32),
        ("timeout_ms", c_uint32),
        ("samples", POINTER(Tensor)),
        ("device", c_int32),
        ("device_number", c_int32),
        ("stream", c_void_p),
        ("plain", c_void_p),
        ("ready_seconds", POINTER(c_double)),
    ]


class StepOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("scale", c_double),
        ("is_sum", c_int32),
        ("skips_non_finite", c_int32),
        ("measures_errors", c_int32),
    ]


class StepOutcome(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("is_skipped", c_int32)]


class SyncRestored(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("next_step", c_uint64),
        ("num_kept", c_size_t),
        ("num_joined", c_size_t),
        ("num_reset", c_size_t),
        ("notes", c_char_p),
        ("num_left", c_size_t),
    ]


_TENSORS, _HANDLE = POINTER(Tensor), POINTER(c_void_p)
_TEXT: List[Any] = [c_void_p, c_void_p, POINTER(c_size_t)]

# As STATUS_FUNCTIONS of _abi.py.
STATUS_FUNCTIONS: Dict[str, List[Any]] = {
    "cinch_transport_of_ucx": [POINTER(UcxOptions), _HANDLE],
    "cinch_loopback_open": [c_uint32, _HANDLE],
    "cinch_transport_of_loopback": [c_void_p, c_uint32, _HANDLE],
    "cinch_nccl_make_id": [c_char_p, c_char_p],
    "cinch_transport_of_nccl": [c_char_p, c_uint32, c_uint32, POINTER(NcclOptions), _HANDLE],
    "cinch_policy_apply": [c_char_p, POINTER(PolicyTensor), c_size_t, _HANDLE],
    "cinch_policy_get_program": [c_void_p, c_size_t, POINTER(PolicyProgram)],
    "cinch_policy_get_choice": [c_void_p, c_size_t, POINTER(PolicyChoice)],
    "cinch_sync_open": [c_void_p, _HANDLE, c_size_t, POINTER(SyncTensor), c_size_t, POINTER(SyncOptions), _HANDLE],
    "cinch_sync_set": [c_void_p, c_size_t, c_char_p, c_double],
    "cinch_sync_set_input": [c_void_p, c_size_t, c_char_p, POINTER(Tensor)],
    "cinch_sync_step": [c_void_p, c_uint64, _TENSORS, _TENSORS, c_size_t],
    "cinch_sync_begin": [c_void_p, c_uint64, POINTER(StepOptions)],
    "cinch_sync_ready": [c_void_p, c_size_t, _TENSORS, _TENSORS, c_int32],
    "cinch_sync_wait": [c_void_p, c_size_t],
    "cinch_sync_finish": [c_void_p, POINTER(StepOutcome)],
    "cinch_sync_report": _TEXT,
    "cinch_sync_trace": _TEXT,
    "cinch_sync_states_save": _TEXT,
    "cinch_sync_states_load": [c_void_p, POINTER(c_char_p), POINTER(c_size_t), c_size_t, POINTER(SyncRestored)],
    "cinch_sync_states_restore_own": [c_void_p, c_char_p, c_size_t, POINTER(SyncRestored)],
    "cinch_sync_states_reset": [c_void_p, c_size_t],
}
RELEASES = ("cinch_transport_release", "cinch_loopback_release", "cinch_policy_release", "cinch_sync_release")
TEXTS = ("cinch_sync_plan", "cinch_sync_choice")


def declare(library: ctypes.CDLL) -> None:
    """Gives every function of these headers that the package calls its prototype."""
    declare_status(library, STATUS_FUNCTIONS)
    for name in RELEASES:
        getattr(library, name).argtypes, getattr(library, name).restype = [c_void_p], None
    for name in TEXTS:
        getattr(library, name).argtypes, getattr(library, name).restype = [c_void_p], c_char_p
    for name in ("cinch_transport_rank", "cinch_transport_world"):
        getattr(library, name).argtypes, getattr(library, name).restype = [c_void_p], c_uint32
    library.cinch_transport_sent_bytes.argtypes, library.cinch_transport_sent_bytes.restype = [c_void_p], c_uint64
    library.cinch_policy_num_programs.argtypes, library.cinch_policy_num_programs.restype = [c_void_p], c_size_t
    library.cinch_sync_is_done.argtypes, library.cinch_sync_is_done.restype = [c_void_p, c_size_t], c_int32
    library.cinch_set_log.argtypes, library.cinch_set_log.restype = [TakesLine, c_void_p], None
    library.cinch_sync_stop.argtypes, library.cinch_sync_stop.restype = [c_void_p], None

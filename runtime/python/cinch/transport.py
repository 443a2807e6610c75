"""Transports: how one rank moves bytes to and from the others."""
import ctypes
import weakref
from typing import Any, Callable, List, Optional, Protocol, Tuple

from . import _abi, _library
from . import _sync_abi as sync_abi
from .arrays import unsigned


class Store(Protocol):
    """Where ranks find each other. What one rank sets under a key the others get."""

    def set(self, key: str, value: bytes) -> None: ...
    def get(self, key: str, timeout: float) -> Optional[bytes]:
        """Waits for the key, at most `timeout` seconds; None: it has not come."""


class Transport:
    """One rank's connection to the others. Several synchronizers may use it, one after the other.

    Made by `Transport.ucx`, `Transport.nccl` and `Transport.loopback`. Whoever closes one gives up: ranks that wait
    for it get an error.

    Attributes:
        rank, world: which rank this is, and of how many.
        name: "ucx", "nccl" or "loopback".
    """

    def __init__(self, handle: ctypes.c_void_p, name: str, held: Tuple[Any, ...] = ()) -> None:
        library = _library.loaded()
        self._handle = handle
        self._held = held  # callbacks that the library calls
        self.name = name
        self.rank = int(library.cinch_transport_rank(handle))
        self.world = int(library.cinch_transport_world(handle))
        self._release = weakref.finalize(self, library.cinch_transport_release, handle)
        self._release.atexit = False

    def __reduce__(self) -> str:
        raise TypeError("a transport is not pickled: it is a connection of this process")

    def close(self) -> None:
        """Again is allowed. What synchronises over it keeps what it needs."""
        self._release()

    def __enter__(self) -> "Transport":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank has put on the wire so far."""
        return int(_library.loaded().cinch_transport_sent_bytes(self._handle)) if self._release.alive else 0

    @staticmethod
    def ucx(
        rank: int,
        world: int,
        *,
        rendezvous: Optional[str] = None,
        store: Optional[Store] = None,
        secret: bytes = b"",
        interface: Optional[str] = None,
        transports: Optional[str] = None,
        timeout: float = 30.0,
    ) -> "Transport":
        """Ranks that are processes, over UCX: TCP, shared memory, RDMA. All of them call it.

        Args:
            rendezvous: "HOST:PORT", at which rank 0 listens until all have come; or `store`, one of both.
            secret: the same on all ranks, who prove to each other that they have it.
            interface: "eth0"; None: any.
            transports: as UCX_TLS: "tcp", "posix".
            timeout: seconds that the others may take to come.

        Errors, the same on all ranks: InvalidArgumentError, UnavailableError (no UCX), IoError (the port is in use),
        TimedOutError (names the ranks that have not come), CancelledError, VersionError, DeviceError.
        """
        calls = None if store is None else _store_calls(store)
        options = _abi.sized(
            sync_abi.UcxOptions,
            rank=unsigned(rank, 32, "rank"),
            world=unsigned(world, 32, "world"),
            rendezvous=None if rendezvous is None else _library.c_text(rendezvous),
            store=None if calls is None else ctypes.pointer(calls),
            secret=secret or None,
            secret_bytes=len(secret),
            interface_name=None if interface is None else _library.c_text(interface),
            timeout_ms=milliseconds(timeout),
            transports=None if transports is None else _library.c_text(transports),
        )
        return Transport(_made("cinch_transport_of_ucx", ctypes.byref(options)), "ucx", (calls,))

    @staticmethod
    def nccl(identity: bytes, rank: int, world: int, *, device: int = 0, is_exact: bool = False, timeout: float = 30.0) -> "Transport":
        """Ranks on GPUs. `identity` is what `nccl_identity` gave on one rank, brought to all. Errors: InvalidArgumentError,
        UnavailableError (no NCCL, no such GPU), TimedOutError, DeviceError."""
        options = _abi.sized(
            sync_abi.NcclOptions, device_number=device, is_exact=int(is_exact), timeout_ms=milliseconds(timeout)
        )
        handle = _made("cinch_transport_of_nccl", identity, unsigned(rank, 32, "rank"), unsigned(world, 32, "world"), ctypes.byref(options))
        return Transport(handle, "nccl")

    @staticmethod
    def loopback(world: int) -> "List[Transport]":
        """A transport for each rank; ranks are threads of this process."""
        loopback = _made("cinch_loopback_open", unsigned(world, 32, "world"))
        try:
            return [Transport(_made("cinch_transport_of_loopback", loopback, rank), "loopback") for rank in range(world)]
        finally:
            _library.loaded().cinch_loopback_release(loopback)


def nccl_identity() -> bytes:
    """For one rank, which brings it to the others. Errors: UnavailableError (no NCCL), DeviceError."""
    identity = ctypes.create_string_buffer(sync_abi.NCCL_ID_BYTES)
    _library.call("cinch_nccl_make_id", None, identity)
    return identity.raw


def milliseconds(seconds: float) -> int:
    """Of a time-out; the library takes 0 for its default."""
    return unsigned(max(1, round(seconds * 1000)), 32, "timeout in milliseconds")


def _made(function: str, *arguments: Any) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _library.call(function, *arguments, ctypes.byref(handle))
    return handle


def _store_calls(store: Store) -> sync_abi.StoreCalls:
    failure: List[str] = [""]

    def guarded(action: Callable[[], None]) -> int:
        try:
            action()
            return 0
        except Exception as error:  # whatever it is, it must not cross the C API
            failure[0] = f"{type(error).__name__}: {error}"
            return 1

    def put(_: Any, key: bytes, value: int, size: int) -> int:
        return guarded(lambda: store.set(key.decode(), ctypes.string_at(value, size)))

    def get(_: Any, key: bytes, value: int, size: Any, timeout_ms: int) -> int:
        def give() -> None:
            found = store.get(key.decode(), timeout_ms / 1000)
            if found is None:
                size[0] = sync_abi.STORE_NOTHING
                return
            if len(found) <= size[0]:
                ctypes.memmove(value, found, len(found))
            size[0] = len(found)

        return guarded(give)

    def error_text(_: Any, __: int, text: int, room: int) -> None:
        said = failure[0].encode(errors="replace")[: room - 1]
        ctypes.memmove(text, said + b"\0", len(said) + 1)

    return _abi.sized(
        sync_abi.StoreCalls, put=sync_abi.StorePut(put), get=sync_abi.StoreGet(get), error_text=sync_abi.StoreErrorText(error_text)
    )

"""Over which axes of `jax.shard_map` values vary. A call of XLA's FFI takes arguments that vary alike, and says what varies of its results.

JAX has changed the names of this several times, and has versions without it; there is nothing to say then.
"""
import inspect
from typing import Any, FrozenSet, Sequence, Tuple

import jax
import jax.numpy as jnp


def axes_of(value: Any) -> FrozenSet[Any]:
    """The axes that `value` varies over; none outside of shard_map, or where it does not check that."""
    kind = _type_of(value)
    found = getattr(getattr(kind, "manual_axis_type", None), "varying", None)
    return frozenset(getattr(kind, "vma", None) or () if found is None else found)


def _type_of(value: Any) -> Any:
    return jax.typeof(value) if hasattr(jax, "typeof") else None


def alike(values: Sequence[Any]) -> Tuple[Any, ...]:
    """The same values, each of which varies over all axes that one of them varies over."""
    axes: FrozenSet[Any] = frozenset().union(*map(axes_of, values))
    return tuple(_over(value, axes - axes_of(value)) for value in values)


def _over(value: Any, missing: FrozenSet[Any]) -> Any:
    if not missing:
        return value
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, tuple(missing), to="varying")
    return getattr(jax.lax, "pvary")(value, tuple(missing))  # its former name


def result(shape: Sequence[int], dtype: Any, axes: FrozenSet[Any]) -> Any:
    """The type of a result that varies over `axes`."""
    if not axes:
        struct: Any = jax.ShapeDtypeStruct
        return struct(tuple(shape), dtype)
    # The spelling of types differs between versions. The type of an existing value, which is then unused, is right in all.
    return jax.typeof(_over(jnp.zeros(shape, dtype), axes))


def gathered(value: Any, axis_name: Any) -> Any:
    """`value` of all ranks of an axis, stacked: known to be the same on all of them where JAX can say so."""
    if axes_of(value) and "to" in inspect.signature(jax.lax.all_gather).parameters:
        return jax.lax.all_gather(value, axis_name, to="invarying")
    return jax.lax.all_gather(value, axis_name)

"""Runs the tests of this folder; ends with status 77 where JAX or pytest is not installed."""
import os
import sys
import tempfile

# Read when JAX starts: shard_map needs several devices.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

try:
    import jax.ffi  # noqa: F401
    import pytest
except ImportError as missing:
    print(f"JAX or pytest is not installed: {missing}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
with tempfile.TemporaryDirectory() as cache:
    os.environ["CINCH_CACHE_DIR"] = cache  # the user's has other programs
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--durations=10", *sys.argv[1:], HERE]))

"""Runs the tests of this folder; ends with status 77 where PyTorch or pytest is not installed."""
import os
import sys
import tempfile

try:
    import pytest
    import torch  # noqa: F401
    import torch.distributed
except ImportError as missing:
    print(f"PyTorch or pytest is not installed: {missing}")
    sys.exit(77)

if not torch.distributed.is_available():
    print("PyTorch has no torch.distributed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":  # ranks are processes that load this file, too
    # All ranks compile the same programs: once, and not from the user's cache.
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CINCH_CACHE_DIR"] = cache
        sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--durations=10", *sys.argv[1:], HERE]))

"""Runs the tests of this folder; ends with status 77 where NumPy is not installed."""
import os
import sys
import tempfile
import unittest

try:
    import numpy  # noqa: F401
except ImportError as missing:
    print(f"NumPy is not installed: {missing}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
# The package and the command compile the same programs: once, and not from the user's cache.
cache = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # a thread may still compile better code
os.environ["CINCH_CACHE_DIR"] = cache.name
result = unittest.TextTestRunner().run(unittest.defaultTestLoader.discover(HERE, pattern="*_test.py"))
sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)

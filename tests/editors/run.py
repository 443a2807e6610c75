"""run.py TEST: runs TEST_test.py of this folder; ends with status 77 where a package that it needs is missing."""
import importlib
import sys
import unittest

try:
    module = importlib.import_module(sys.argv[1] + "_test")
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule(module))
all_skipped = result.testsRun > 0 and len(result.skipped) == result.testsRun
sys.exit(77 if all_skipped else 0 if result.wasSuccessful() and result.testsRun > 0 else 1)

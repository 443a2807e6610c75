"""Ranks for all tests, and covering sets: of a test with three cases or more a run takes every second one, from the first or the second on by the test's
name, and where CINCH_HALF is 0 or 1 every second one of what is left. CINCH_LONG=1 takes all."""
import os
import zlib

import pytest
from support import Ranks

IS_LONG = os.environ.get("CINCH_LONG", "0") not in ("", "0")
_FEW = 3


@pytest.fixture(scope="session")
def ranks():
    made = Ranks()
    yield made
    made.close()


def pytest_collection_modifyitems(config, items):
    if IS_LONG or config.option.keyword:
        return
    by_test = {}
    for item in items:
        by_test.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    left_out = []
    for (_, name), cases in by_test.items():
        if len(cases) >= _FEW:
            left_out += cases[1 - zlib.crc32(name.encode()) % 2::2]
    if half := os.environ.get("CINCH_HALF"):
        left_out += [item for item in items if item not in left_out][1 - int(half)::2]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]

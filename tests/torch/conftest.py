import pytest
from support import Ranks


@pytest.fixture(scope="session")
def ranks():
    made = Ranks()
    yield made
    made.close()

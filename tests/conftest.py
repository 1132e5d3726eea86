"""The servers that tests share, and what is checked after each test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.servers import session


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        session.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        if os.environ.get("MUNIMENT_TEST_POSTGRES_URL"):
            from tests.servers import databases

            databases.drop_all()
        session.end()


@pytest.fixture(autouse=True)
def _databases_are_returned() -> Iterator[None]:
    yield
    used = sys.modules.get("tests.servers.databases")
    if used is not None:
        used.DATABASES.returned()

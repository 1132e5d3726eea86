"""The service's replicas, started once for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doubles.replicas import Person, Replicas, replicas_on


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def replicas(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replicas]:
    with replicas_on(request.param, tmp_path_factory.mktemp("replicas")) as running:
        yield running


@pytest.fixture
def person(replicas: Replicas) -> Iterator[Person]:
    with replicas.people() as found:
        yield found

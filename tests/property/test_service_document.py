"""Whatever fits the OpenAPI document, or nearly, gets a documented answer and never a 500."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.doubles.openai_server import OpenAIServer
from tests.doubles.service import JWT_MODE, Service, bearer

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """JSON Lines go as they are."""
    return str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with OpenAIServer.running() as upstream:
        environment = {
            **JWT_MODE,
            "MUNIMENT_MODEL": "m",
            "MUNIMENT_MODEL_BASE_URL": upstream.url,
            "MUNIMENT_ALLOW_FULL_MEMORY": "true",
        }
        with Service.running(tmp_path_factory.mktemp("fuzzed"), **environment) as running:
            yield running


@pytest.fixture(scope="module")
def document(service: Service) -> Any:
    return schemathesis.openapi.from_url(f"{service.url}/openapi.json")


def test_every_answer_is_documented_and_none_is_a_500(document: Any) -> None:
    for found in document.get_all_operations():
        _ask(found.ok())


def _ask(operation: Any) -> None:
    """Requests that fit the operation's schema, and requests that do not."""
    for mode in GenerationMode:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=8,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def asked(case: Any) -> None:
            answer = case.call(headers=bearer(role="admin", projects=["apollo"]))
            case.validate_response(answer, checks=CHECKS)

        with suppress(Unsatisfiable):  # an operation that takes nothing cannot be asked badly
            asked()


def test_the_document_is_valid_and_names_every_error_alike(service: Service) -> None:
    document = httpx2.get(f"{service.url}/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    content = answer["content"]
                    assert list(content) == ["application/problem+json"], (path, method, status)
    assert httpx2.get(f"{service.url}/docs").status_code == 200

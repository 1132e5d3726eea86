"""The errors that routes document."""

from __future__ import annotations

from typing import Any

from muniment.server.problems import MEDIA_TYPE, ProblemDocument

_SAID = {
    401: "No valid credential.",
    403: "The credential's tenants or role do not reach.",
    404: "Not there, or not the caller's: one answer.",
    409: "Busy: try again after Retry-After.",
    413: "The body is too large.",
    414: "The path is too long.",
    422: "A field cannot be used.",
    429: "The model takes no more requests now.",
    431: "The headers are too large.",
    500: "Unexpected.",
    502: "The model's answer is broken.",
    503: "Not now: try again after Retry-After, or configure what the answer names.",
    504: "The model took too long.",
    507: "The tenant's quota is full.",
}
ALWAYS = (413, 414, 422, 431, 500, 503)
SIGNED = (401, 403, *ALWAYS)
ITEM = (404, *SIGNED)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer these."""
    schema = {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}
    return {
        status: {"description": _SAID[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted(set(statuses))
    }

"""When a provider's answer means that it does not serve structured output."""

from __future__ import annotations

from pydantic import ValidationError

from muniment.errors import StructuredOutputUnsupported
from muniment.ports import Reply

_REFUSING = frozenset({400, 404, 415, 422, 501})
_BROKEN = 500


def refuses(error: Exception) -> bool:
    """Whether `error` is a provider's refusal of the request as it was put.

    A request that is bad for another reason fails again in plain text, and says so there.
    """
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    # llama.cpp's server answers 500 to a response format that it does not know.
    named = any(name in str(error) for name in ("response_format", "json_schema"))
    return status in _REFUSING or (status == _BROKEN and named)


def read_reply(schema: type[Reply], content: object) -> Reply:
    """`content` (JSON text, a mapping or a model) as `schema`.

    StructuredOutputUnsupported for what does not fit, without the content: many endpoints
    accept a response format and ignore it.
    """
    try:
        if isinstance(content, str):
            return schema.model_validate_json(content)
        return schema.model_validate(content)
    except ValidationError:
        raise StructuredOutputUnsupported("the model's reply does not fit the schema") from None

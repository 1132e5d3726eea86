"""Any LangChain `BaseChatModel` as the memory model (extra `langchain`)."""

from __future__ import annotations

from muniment.errors import StructuredOutputUnsupported
from muniment.extras import missing_extra
from muniment.models.refusal import read_reply, refuses
from muniment.ports import Reply

try:
    from langchain_core.exceptions import OutputParserException
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
except ModuleNotFoundError as error:
    raise missing_extra("langchain") from error


class LangChainModel:
    """`chat` behind the model port. Errors are those of the chat model's provider, and
    StructuredOutputUnsupported where it cannot or will not give structured output."""

    def __init__(self, chat: BaseChatModel) -> None:
        self._chat = chat

    async def generate_text(self, *, system: str, user: str) -> str:
        """The reply's text; what is not text (reasoning, images) is left out."""
        reply = await self._chat.ainvoke(_prompt(system, user))
        return str(reply.text)

    async def generate_structured(self, *, schema: type[Reply], system: str, user: str) -> Reply:
        """The reply as `schema`, by whichever way the chat model offers."""
        try:
            structured = self._chat.with_structured_output(schema)
            content = await structured.ainvoke(_prompt(system, user))
        except (NotImplementedError, OutputParserException, ValueError):
            # Parsers put the model's reply into the text of these.
            raise StructuredOutputUnsupported("the model gave no structured output") from None
        except Exception as error:
            if refuses(error):
                raise StructuredOutputUnsupported("the provider refuses the schema") from None
            raise
        return read_reply(schema, content)


def _prompt(system: str, user: str) -> list[BaseMessage]:
    return [SystemMessage(system), HumanMessage(user)]

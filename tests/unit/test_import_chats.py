"""`import-chats`: exports of other systems become a user's conversations, once."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment import InvalidEntryError
from muniment.cli.app import run
from muniment.integrations.chat_files import ChatFormat, read_chats
from muniment.integrations.json_arrays import array_items

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    monkeypatch.setenv("COLUMNS", "80")

    def called(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


def document(call: Call, *arguments: str) -> Any:
    code, out, err = call(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def node(
    key: str, parent: str | None, role: str, *parts: Any, at: float | None = 1.7e9, **extra: Any
) -> dict[str, Any]:
    content = {"content_type": extra.pop("kind", "text"), "parts": list(parts)}
    message = {"id": key, "author": {"role": role}, "create_time": at, "content": content, **extra}
    return {"id": key, "message": message, "parent": parent, "children": []}


def chatgpt(*nodes: dict[str, Any], current: str, **extra: Any) -> dict[str, Any]:
    root = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {"root": root, **{each["id"]: each for each in nodes}}
    return {
        "title": "Boats",
        "create_time": 1.7e9,
        "conversation_id": "c1",
        "mapping": mapping,
        "current_node": current,
        **extra,
    }


KAYAK = chatgpt(
    node("s", "root", "system", ""),
    node("q", "s", "user", "Which kayak fits a beginner?"),
    node("old", "q", "assistant", "A surfski."),
    node("tool", "q", "assistant", "search(kayak)", recipient="browser"),
    node("found", "tool", "tool", "ten pages about kayaks"),
    node(
        "new", "found", "assistant", "A wide one.", {"asset_pointer": "x"}, kind="multimodal_text"
    ),
    node("thanks", "new", "user", "Thank you, I took the red one.", at=None),
    current="thanks",
)
CLAUDE = {
    "uuid": "u1",
    "name": "Tea",
    "chat_messages": [
        {
            "uuid": "m1",
            "sender": "human",
            "text": "",
            "content": [
                {"type": "text", "text": "I drink sencha."},
                {"type": "tool_use", "input": {}},
            ],
            "created_at": "2026-01-02T03:04:05.678Z",
        },
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "Noted.",
            "created_at": "2026-01-02T03:04:06Z",
        },
        {"uuid": "m3", "sender": "human", "text": " ", "created_at": "2026-01-02T03:05:06Z"},
    ],
}
LINE = {"role": "user", "content": "I own a cello.", "created_at": "2026-01-02T03:04:05Z"}


def write(name: str, content: object) -> str:
    Path(name).write_text(json.dumps(content), "utf-8")
    return name


def lines(*records: object) -> str:
    text = "\n".join(
        record if isinstance(record, str) else json.dumps(record) for record in records
    )
    Path("messages.jsonl").write_text(text, "utf-8")
    return "messages.jsonl"


def said(call: Call, session: str, *owner: str) -> list[tuple[str, str]]:
    shown = document(call, "sessions", "show", session, *owner)
    return [(message["role"], message["content"]) for message in shown["messages"]]


def test_of_a_chatgpt_export_the_branch_shown_last_is_stored_and_recalled(call: Call) -> None:
    counts = document(call, "import-chats", write("conversations.json", [KAYAK]))
    assert (counts["conversations"], counts["stored"], counts["unspoken"]) == (1, 3, 3)
    assert said(call, "chatgpt-c1") == [
        ("user", "Which kayak fits a beginner?"),
        ("assistant", "A wide one."),
        ("user", "Thank you, I took the red one."),
    ]
    listed = document(call, "sessions", "list")["sessions"]
    assert [(row["title"], row["created_at"][:4] > "2023") for row in listed] == [("Boats", True)]
    found = document(call, "recall", "which kayak did I take")
    assert (found[0]["trust"], found[0]["created_at"]) == ("untrusted", "2023-11-14T22:13:20+00:00")


def test_of_a_claude_export_the_words_of_both_sides_are_stored(call: Call) -> None:
    counts = document(call, "import-chats", write("conversations.json", [CLAUDE]))
    assert (counts["stored"], counts["unspoken"]) == (2, 1)
    assert said(call, "claude-u1") == [("user", "I drink sencha."), ("assistant", "Noted.")]


def test_the_archive_is_read_as_it_was_downloaded(call: Call) -> None:
    with zipfile.ZipFile("export.zip", "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps([KAYAK, CLAUDE | {"mapping": 1}][:1]))
    assert document(call, "import-chats", "export.zip")["stored"] == 3
    with zipfile.ZipFile("other.zip", "w") as archive:
        archive.writestr("user.json", "{}")
    code, out, err = call("import-chats", "other.zip")
    assert (code, out) == (2, "")
    assert "conversations.json" in err


def test_lines_of_messages_keep_their_sessions_names_and_calls(call: Call) -> None:
    call_of = {
        **LINE,
        "role": "assistant",
        "content": "",
        "tool_calls_json": "[]",
        "session_id": "b",
    }
    file = lines({**LINE, "name": "Ida"}, "", call_of, {**LINE, "content": "It is old."})
    counts = document(call, "import-chats", file, "--session", "a")
    assert (counts["conversations"], counts["stored"]) == (2, 3)
    shown = document(call, "sessions", "show", "a")["messages"]
    assert [(each.get("name"), each["content"]) for each in shown] == [
        ("Ida", "I own a cello."),
        (None, "It is old."),
    ]
    assert document(call, "sessions", "show", "b")["messages"][0]["tool_calls_json"] == "[]"


@pytest.mark.parametrize("form", ["chatgpt", "lines"])
def test_importing_again_adds_only_what_is_new(call: Call, form: str) -> None:
    def file(*later: str) -> str:
        if form == "lines":
            return lines(LINE, *({**LINE, "content": text} for text in later))
        nodes = [node("q", "root", "user", "I own a cello.")]
        for text in later:
            nodes.append(node(text, nodes[-1]["id"], "user", text))
        return write("conversations.json", [chatgpt(*nodes, current=nodes[-1]["id"])])

    session = ("--session", "chatgpt-c1")
    document(call, "import-chats", file(), *session)
    call("sessions", "rename", "chatgpt-c1", "Mine")
    first = document(call, "sessions", "show", "chatgpt-c1")
    again = document(call, "import-chats", file(), *session)
    assert (again["stored"], again["known"]) == (0, 1)
    assert document(call, "sessions", "show", "chatgpt-c1") == first
    more = document(call, "import-chats", file("It is old."), *session)
    assert (more["stored"], more["known"]) == (1, 1)
    assert [text for _, text in said(call, "chatgpt-c1")] == ["I own a cello.", "It is old."]
    assert document(call, "sessions", "show", "chatgpt-c1")["title"] == "Mine"


def test_a_message_stored_before_with_other_words_stays_as_it_is(call: Call) -> None:
    message = {**LINE, "message_id": "m1", "session_id": "s"}
    document(call, "import-chats", lines(message))
    counts = document(call, "import-chats", lines({**message, "content": "I own a tuba."}))
    assert (counts["stored"], counts["known"], counts["changed"]) == (0, 0, 1)
    assert said(call, "s") == [("user", "I own a cello.")]


def test_a_dry_run_counts_and_stores_nothing(call: Call, tmp_path: Path) -> None:
    file = write("conversations.json", [KAYAK])
    counts = document(call, "import-chats", file, "--dry-run")
    assert (counts["stored"], counts["dry_run"]) == (3, True)
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_standard_input_is_read(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO(json.dumps([CLAUDE]).encode()))
    monkeypatch.setattr("sys.stdin", given)
    assert document(call, "import-chats", "-")["stored"] == 2


def test_a_message_that_no_store_takes_is_left_out_alone(call: Call) -> None:
    nodes = [
        node("a", "root", "user", "a NUL \x00"),
        node("b", "a", "user", "lone \ud800"),
        node("c", "b", "user", "x" * (1 << 20) + "y"),
        node("d", "c", "user", "I own a cello."),
    ]
    title = "\ud800 " + "t" * 300
    file = write("conversations.json", [chatgpt(*nodes, current="d", title=title)])
    counts = document(call, "import-chats", file)
    assert (counts["stored"], counts["refused"]) == (1, 3)
    assert document(call, "sessions", "list")["sessions"][0]["title"] == "t" * 200


GOOD_THEN = json.dumps([KAYAK])[:-1]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("secret", "array"),
        ("[" * 60_000, "conversation 1"),
        ("[" + '{"mapping":' * 60_000, "nested too deep"),
        ("[1]", "conversation 1"),
        ("[{}]", "no known export"),
        (GOOD_THEN, "conversation 1"),
        (GOOD_THEN + ",]", "conversation 2"),
        (GOOD_THEN + ',{"mapping": {}, "secret', "conversation 2"),
        (GOOD_THEN + ',{"secret": NaN}]', "conversation 2"),
        (GOOD_THEN + ',{"secret": 1' + "0" * 5000 + "}]", "conversation 2"),
        (GOOD_THEN + "] secret", "follows"),
        (GOOD_THEN + "," + json.dumps(CLAUDE) + "]", "conversation 2"),
        (json.dumps([{**KAYAK, "conversation_id": 7}]), "conversation 1: id"),
        (json.dumps([{**KAYAK, "conversation_id": "secret\n"}]), "conversation 1: id"),
        (json.dumps([{**KAYAK, "mapping": []}]), "conversation 1: mapping"),
        (json.dumps([{**KAYAK, "current_node": "secret"}]), "conversation 1: a message's parent"),
        (json.dumps([{**KAYAK, "create_time": "secret"}]), "conversation 1: create_time"),
        (json.dumps([chatgpt(node("a", "a", "user", "x"), current="a")]), "circle"),
        (json.dumps([chatgpt(node("a", "b", "user", "x"), current="a")]), "parent"),
        (json.dumps([{**CLAUDE, "chat_messages": {}}]), "conversation 1: chat_messages"),
        (json.dumps([{**CLAUDE, "chat_messages": [{"sender": "human"}]}]), "message 1: uuid"),
        (json.dumps(LINE), "line 1: session_id: is missing, and no session is named for all"),
        (
            json.dumps({"session_id": "s", "role": "user", "content": "secret"}),
            "line 1: created_at: is missing",
        ),
        (json.dumps({**LINE, "session_id": "s", "user_id": "bo-secret"}), "line 1: whose"),
        (json.dumps({**LINE, "session_id": "s", "secret": 1}), "line 1: has an unknown field"),
        (json.dumps({**LINE, "session_id": "s", "role": "secret"}), "line 1: role"),
        (json.dumps({**LINE, "session_id": "s", "content": ["secret"]}), "line 1: content"),
        (json.dumps({**LINE, "session_id": "s", "created_at": "secret"}), "line 1: created_at"),
        (json.dumps({**LINE, "session_id": "s", "created_at": 1e300}), "line 1: created_at"),
        (json.dumps({**LINE, "session_id": "s", "content": "secret \x00"}), "line 1: content"),
        (json.dumps({**LINE, "session_id": "s"}) + "\n{secret", "line 2"),
        ('{"role":' + "[" * 60_000, "line 1"),
        (b'{"role": "\xff secret"}', "line 1"),
        (b'["\xff secret"]', "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_in_one_line_and_nothing_is_stored(
    call: Call, tmp_path: Path, content: str | bytes, named: str
) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "file").write_bytes(data)
    code, out, err = call("import-chats", "file")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert named in err
    assert "secret" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_there_is_bad_input(call: Call, tmp_path: Path) -> None:
    for name in ("none.json", "."):
        assert call("import-chats", name)[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_a_named_form_is_held_to(call: Call) -> None:
    file = write("conversations.json", [KAYAK])
    assert "shape" in call("import-chats", file, "--format", "claude")[2]
    assert call("import-chats", file, "--format", "word")[0] == 2
    assert document(call, "import-chats", file, "--format", "chatgpt")["stored"] == 3


class _Measured(io.BytesIO):
    """Remembers how much was read before the first item came."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 <= size <= 1 << 17
        return super().read(size)


def test_an_array_is_read_in_pieces_wherever_they_are_cut() -> None:
    items = [{"n": number, "text": 'ü€😀\\" ' * 400} for number in range(100)]
    text = json.dumps(items, ensure_ascii=False, indent=1)
    assert (
        list(array_items(_Measured(text.encode()), most_characters=9999, most_items=100)) == items
    )
    for limits in ({"most_characters": 99_999, "most_items": 99},):
        with pytest.raises(InvalidEntryError):
            list(array_items(io.BytesIO(text.encode()), **limits))


def test_an_item_over_the_limit_is_refused_before_it_is_read_whole() -> None:
    stream = io.BytesIO(b'["' + b"x" * (1 << 22))
    with pytest.raises(InvalidEntryError, match="at most 100000 characters"):
        list(array_items(stream, most_characters=100_000, most_items=9))
    assert stream.tell() < 1 << 20


def test_a_line_over_the_limit_is_refused() -> None:
    stream = io.BytesIO(b'{"role": "' + b"x" * (9 << 20))
    with pytest.raises(InvalidEntryError, match="line 1: must have at most"):
        list(read_chats(stream, form=ChatFormat.JSONL))

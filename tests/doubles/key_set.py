"""A key set that rotates, served over HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa


class KeySet:
    """A server of key sets, whose keys can be changed, counting what is fetched."""

    def __init__(self) -> None:
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.fetched = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.fetched += 1
                body = json.dumps({"keys": [outer.row(kid) for kid in outer.keys]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def row(self, kid: str) -> dict[str, Any]:
        """One key as it is served."""
        algorithm = jwt.algorithms.RSAAlgorithm
        row: dict[str, Any] = algorithm.to_jwk(self.keys[kid].public_key(), as_dict=True)
        return {**row, "kid": kid, "use": "sig"}

    def rotate(self, kid: str) -> None:
        """Serve a new key under this id, and nothing else."""
        self.keys = {kid: rsa.generate_private_key(65537, 2048)}

    def signed(
        self,
        key_id: str,
        key: rsa.RSAPrivateKey | None = None,
        role: str = "reader",
        **headers: Any,
    ) -> str:
        """A token of ana's."""
        claims = {
            "sub": "ana", "tenants": ["DEFAULT"], "role": role, "exp": int(time.time()) + 3600,
        }  # fmt: skip
        return jwt.encode(
            claims, key or self.keys[key_id], algorithm="RS256", headers={"kid": key_id, **headers}
        )

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[KeySet]:
        """Serve until the end of the block."""
        served = cls()
        try:
            yield served
        finally:
            served.close()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

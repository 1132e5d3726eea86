"""Running the service in this process until it is told to stop."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from contextlib import AsyncExitStack

import uvicorn
from fastapi import FastAPI

from muniment.server.app import create_app
from muniment.server.connections import connections_for
from muniment.server.settings import ServerSettings

GRACE_SECONDS = 30
_TURN_SECONDS = 0.0005
_IN_MEMORY = "memory://"
_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_log = logging.getLogger("muniment.server")


def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT; then finish what is under way, for at most 30 seconds.

    What keeps it from starting is raised: MunimentError for the store or the settings, OSError
    for an address that cannot be listened on.
    """
    _configure_logging()
    # The thread that writes asks for its turn once a statement, and each time waits as long as
    # the event loop may keep it: the usual 5 ms would be most of what a completion waits for.
    sys.setswitchinterval(_TURN_SECONDS)
    warn(settings)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=connections_for(settings.client_seconds),
        ws="none",
        access_log=False,  # its lines hold paths, and those hold ids
        server_header=False,
        proxy_headers=False,  # nothing is decided by a client's address
        log_config=None,
        lifespan="off",  # its own would log a failed start as a traceback
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    _Server(config, app).run()


class _Server(uvicorn.Server):
    """Opens and closes the app's lifespan itself, so that what fails there is raised as it is.

    What was made by the start is kept out of later collections: going through all of it again
    and again takes a tenth of a second each time, in the middle of somebody's answer.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app
        self._opened = AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the app and start to listen."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._app.router.lifespan_context(self._app))
            try:
                await super().startup(sockets)
            except SystemExit:  # logged, with the reason
                where = f"{self.config.host}, port {self.config.port}"
                raise OSError(f"cannot listen on {where}: see --host and --port") from None
            self._opened = stack.pop_all()
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is under way, then close the app."""
        await super().shutdown(sockets)
        if not self.force_exit:
            await self._opened.aclose()


def warn(settings: ServerSettings) -> None:
    """Say what is fit for development only."""
    if settings.auth.mode == "none":
        where = "this machine" if settings.on_loopback else "EVERYONE who reaches this address"
        _log.warning("AUTH_MODE=none: %s is one shared identity, and an admin", where)
    elif settings.auth.issuer is None or settings.auth.audience is None:
        _log.warning("AUTH_ISSUER or AUTH_AUDIENCE is not set, and so not checked")
    if settings.memory.database_url.startswith(_IN_MEMORY):
        _log.warning("the in-process store is bounded and gone with the process: development only")


def _configure_logging() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format=_FORMAT, force=True)
    for noisy in ("aiohttp", "httpx2", "openai"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

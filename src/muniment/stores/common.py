"""What the faces of a store share with it, whichever store it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from muniment.governance.usage import ServedCounts
from muniment.stores.limits import Limits


class Common(Protocol):
    """The clock, the limits, and what searches have served."""

    @property
    def clock(self) -> Callable[[], datetime]: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def served(self) -> ServedCounts: ...

"""What imports that failed or were killed have left: it is nobody's, and it goes."""

from __future__ import annotations

from datetime import datetime, timedelta

import apsw

from muniment.stores.rows import micros
from muniment.stores.sqlite.journal import promise
from muniment.stores.sqlite.statements import SQL

STALE = timedelta(minutes=10)
"""An import that has staged nothing for so long was killed; one that lives stages on."""


def drop_stale(db: apsw.Connection, now: datetime) -> None:
    """Delete what killed imports have staged, its bytes to follow."""
    since = (micros(now - STALE),)
    for table in ("staged", "staged_talks"):
        if db.execute(SQL[f"stale_{table}"], since).fetchall():
            promise(db)
            db.execute(SQL[f"drop_stale_{table}"], since)


def drop(db: apsw.Connection, number: int) -> bool:
    """Delete what one import has staged; True where there was something, its bytes to follow."""
    before = db.total_changes()
    forget(db, number)
    if db.total_changes() == before:
        return False
    promise(db)
    return True


def forget(db: apsw.Connection, number: int) -> None:
    """Delete what one import has staged; a table that holds nothing else is cleared at once."""
    for table in ("staged", "staged_talks"):
        alone = not db.execute(SQL[f"others_{table}"], (number,)).get
        if alone:
            db.execute(SQL[f"clear_{table}"])
        else:
            db.execute(SQL[f"drop_{table}"], (number,))

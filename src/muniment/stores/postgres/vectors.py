"""Embeddings as pgvector's half-precision vectors, in its binary form.

The form: the number of dimensions and a zero as 16-bit integers, then the numbers as
IEEE 754 half-precision floats, all big-endian.
"""

from __future__ import annotations

import struct

import numpy as np
from psycopg import AsyncConnection
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = struct.Struct(">HH")


class Halfvec:
    """A packed vector (see `muniment.evidence.vectors`) on its way into a column."""

    __slots__ = ("wire",)

    def __init__(self, packed: bytes) -> None:
        numbers = np.frombuffer(packed, dtype="<f4").astype(">f2")
        self.wire = _HEAD.pack(len(numbers), 0) + numbers.tobytes()


def halfvec(packed: bytes | None) -> Halfvec | None:
    """`packed` as a parameter, None for absent."""
    return None if packed is None else Halfvec(packed)


def packed_of(wire: bytes | None) -> bytes | None:
    """The inverse of `halfvec`, to half precision."""
    if wire is None:
        return None
    return np.frombuffer(wire, dtype=">f2", offset=_HEAD.size).astype("<f4").tobytes()


def register(connection: AsyncConnection[object], oid: int) -> None:
    """Let `connection` take Halfvec parameters; `oid` is the type's number in its database."""

    class HalfvecDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Halfvec) -> bytes:
            return obj.wire

    HalfvecDumper.oid = oid
    connection.adapters.register_dumper(Halfvec, HalfvecDumper)

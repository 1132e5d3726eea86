"""Embeddings as pgvector's half-precision vectors, in its binary form.

The form: the number of dimensions and a zero as 16-bit integers, then the numbers as
IEEE 754 half-precision floats, all big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from psycopg import AsyncConnection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from muniment.evidence.vectors import ByteVectors, Floats

_HEAD = struct.Struct(">HH")
# Every half by its two bytes as they come, read as one number: looked up, not computed.
_AS_FLOAT = np.arange(1 << 16, dtype="<u2").view(">f2").astype(np.float32)


class Halfvec:
    """A vector on its way into a column; `wire` is its binary form."""

    __slots__ = ("wire",)

    def __init__(self, wire: bytes) -> None:
        self.wire = wire


def halfvec(packed: bytes | None) -> Halfvec | None:
    """A packed vector (see `muniment.evidence.vectors`) as a parameter, None for absent."""
    if packed is None:
        return None
    numbers = np.frombuffer(packed, dtype="<f4").astype(">f2")
    return Halfvec(_HEAD.pack(len(numbers), 0) + numbers.tobytes())


class HalfVectors(ByteVectors):
    """Vectors of an image, read in the form that the server sends."""

    @staticmethod
    def unpack(stored: Sequence[bytes]) -> Floats:
        """Wire forms, all equally long, as rows of numbers."""
        numbers = np.frombuffer(b"".join(stored), dtype="<u2").reshape(len(stored), -1)
        return _AS_FLOAT.take(numbers[:, _HEAD.size // 2 :])


def register(connection: AsyncConnection[object], oid: int) -> None:
    """Let `connection` take Halfvec parameters; `oid` is the type's number in its database."""

    class HalfvecDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Halfvec) -> bytes:
            return obj.wire

    HalfvecDumper.oid = oid
    connection.adapters.register_dumper(Halfvec, HalfvecDumper)

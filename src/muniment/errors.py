"""Every error that Muniment raises.

    MunimentError
    ├── MemoryError                     misuse of the memory tiers
    │   ├── MemoryConfigurationError    something is not configured, or incoherently
    │   └── MemoryScopeError            the owner cannot do this
    ├── MemoryStoreError                a store could not do what was asked
    │   ├── InvalidEntryError           (ValueError) an entry breaks a rule
    │   ├── FileInTheWayError       (FileExistsError) an export does not overwrite
    │   ├── NotFoundError               not there, or not yours: the same
    │   └── QuotaExceededError          the tenant's quota is full
    ├── ScopeError                      (ValueError) a realm is malformed
    ├── AuditError                      the audit log is damaged or unwritable
    └── StructuredOutputUnsupported     a model's provider refuses structured output

Plain ``ValueError`` is raised by the domain's values for a bad field; it names the field
and never quotes memory text.
"""

from __future__ import annotations


class MunimentError(Exception):
    """Root of the package's errors."""


class MemoryError(MunimentError):  # noqa: A001 - the field's name; never re-exported by `*`
    """Misuse of the memory tiers."""


class MemoryConfigurationError(MemoryError):
    """A tier, policy or setting is missing or incoherent."""


class MemoryScopeError(MemoryError):
    """The owner lacks what the operation needs, or is not the caller."""


class MemoryStoreError(MunimentError):
    """A store could not do what was asked."""


class InvalidEntryError(MemoryStoreError, ValueError):
    """An entry breaks one of the store's rules; nothing was stored."""


class FileInTheWayError(MemoryStoreError, FileExistsError):
    """A file of that name exists; it is never overwritten."""


class NotFoundError(MemoryStoreError):
    """No such memory, or not visible here: the two are one answer."""

    def __init__(self, message: str = "no such memory") -> None:
        super().__init__(message)


class QuotaExceededError(MemoryStoreError):
    """The write would exceed the tenant's quota; nothing changed."""


class ScopeError(MunimentError, ValueError):
    """A realm or one of its parts is malformed."""


class AuditError(MunimentError):
    """The audit log cannot be written or is damaged."""


class StructuredOutputUnsupported(MunimentError):
    """The model's provider does not serve structured output; ask in plain text."""

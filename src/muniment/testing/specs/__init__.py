"""The specs, one module a capability."""

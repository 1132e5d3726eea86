"""What the service counts. No label holds a tenant, a user, or an id of theirs."""

from __future__ import annotations

import logging

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The service's own registry, so that several apps in a process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Histogram(
            "muniment_request_seconds",
            "Time to answer a request, by operation and status.",
            ("operation", "status"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._steps = Histogram(
            "muniment_step_seconds",
            "Time of one step of a completion: memory steps, and the model.",
            ("step",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._degraded = Counter(
            "muniment_degradations_total",
            "Answers given with less than they should have, by cause.",
            ("cause",),
            registry=self.registry,
        )
        self._tokens = Counter(
            "muniment_tokens_served_total",
            "Tokens of memory put into prompts or answers (estimated).",
            ("operation",),
            registry=self.registry,
        )
        self._sizes = Gauge(
            "muniment_store_size", "What the store holds.", ("kind",), registry=self.registry
        )
        self.running = Gauge(
            "muniment_completions_running", "Completions under way.", registry=self.registry
        )

    def request(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(operation, str(status)).observe(seconds)

    def step(self, step: str, seconds: float) -> None:
        """A step of a completion took so long."""
        self._steps.labels(step).observe(seconds)

    def degraded(self, cause: str) -> None:
        """Something was left out of an answer."""
        self._degraded.labels(cause).inc()

    def served(self, operation: str, tokens: int) -> None:
        """Memory's tokens went into a prompt or an answer."""
        self._tokens.labels(operation).inc(tokens)

    def sizes(self, sizes: dict[str, int]) -> None:
        """What the store holds, by kind."""
        for kind, size in sizes.items():
            self._sizes.labels(kind).set(size)

    def text(self) -> bytes:
        """The figures in Prometheus' text format."""
        return generate_latest(self.registry)


class DegradationHandler(logging.Handler):
    """Counts the turn's warnings: each is a step that failed, which the turn went on without."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(logging.WARNING)
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        """Count one warning under its step."""
        step = getattr(record, "step", None)
        if isinstance(step, str):
            self._metrics.degraded(step)

"""The metrics of a server, in Prometheus' text format. Each application has its own registry, so that two applications
in one process do not share counters."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from lectern import __version__
from lectern.conversations.runs import QuestionOutcome, Runs
from lectern.domain.dependencies import DEPENDENCIES, Call
from lectern.domain.jobs import IngestionJob
from lectern.jobs.runner import Jobs

CONTENT_TYPE = CONTENT_TYPE_LATEST
BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one application."""

    def __init__(self, runs: Runs, jobs: Jobs) -> None:
        self.registry = CollectorRegistry()
        Gauge("lectern_info", "The version that runs.", ["version"], registry=self.registry).labels(__version__).set(1)
        self._requests = Counter(
            "lectern_http_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lectern_http_request_seconds",
            "From request to last byte.",
            ["route"],
            buckets=BUCKET_SECONDS,
            registry=self.registry,
        )
        self._questions = Counter(
            "lectern_questions", "Questions by how they ended.", ["outcome"], registry=self.registry
        )
        self._question_seconds = Histogram(
            "lectern_question_seconds", "From question to reply.", buckets=BUCKET_SECONDS, registry=self.registry
        )
        self._tokens = Counter("lectern_tokens", "Tokens that models used.", registry=self.registry)
        self._jobs = Counter("lectern_jobs", "Ingestions by how they ended.", ["status"], registry=self.registry)
        self._embedded = Counter("lectern_chunks_embedded", "Texts sent to the embedder.", registry=self.registry)
        active = Gauge("lectern_runs_active", "Questions that are being answered.", registry=self.registry)
        active.set_function(lambda: runs.active)
        jobs.watchers.append(self.job)
        self._calls = Counter(
            "lectern_dependency_calls",
            "Calls of other servers, failed ones included.",
            ["dependency"],
            registry=self.registry,
        )
        self._errors = Counter(
            "lectern_dependency_errors", "Calls of other servers that failed.", ["dependency"], registry=self.registry
        )
        self._call_seconds = Histogram(
            "lectern_dependency_seconds",
            "Seconds of calls of other servers.",
            ["dependency"],
            buckets=BUCKET_SECONDS,
            registry=self.registry,
        )
        for dependency in DEPENDENCIES:  # a rate begins at zero, not at the first failure
            self._calls.labels(dependency)
            self._errors.labels(dependency)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def question(self, run: QuestionOutcome) -> None:
        """Count a question that has ended, with or without a reply."""
        self._questions.labels(run.outcome).inc()
        if (reply := run.reply) is not None:
            self._question_seconds.observe(float(reply["total_time_ms"]) / 1000)
            self._tokens.inc(int(reply["tokens_used"]))

    def job(self, job: IngestionJob) -> None:
        """Count an ingestion that has ended."""
        self._jobs.labels(job.status).inc()
        self._embedded.inc(job.chunks_embedded)

    def call(self, call: Call) -> None:
        """Count a call of a dependency. It may be of any application of the process."""
        self._calls.labels(call.dependency).inc()
        self._errors.labels(call.dependency).inc(call.error is not None)
        self._call_seconds.labels(call.dependency).observe(call.seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

"""The settings of the server."""

from dataclasses import dataclass

from cpsched.site.serve.access import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How the server answers, and whom."""

    tokens: tuple[Token, ...] = ()
    #: Whether the server listens on the loopback interface only, where reading needs no token.
    is_loopback: bool = True
    #: Requests of one client: in a second in the long run, and at once.
    rate: float = 20.0
    burst: int = 200
    #: The largest instance that may be submitted, and the largest body of any other request, in bytes.
    most_bytes: int = 16 * 2**20
    most_question_bytes: int = 64 * 2**10
    #: The most jobs (elements of arrays count) and nodes of an instance that is submitted.
    most_jobs: int = 20_000
    most_nodes: int = 20_000
    #: The longest budget of a submitted instance, or of a what-if, in seconds.
    most_seconds: float = 60.0
    #: Plans and what-ifs that are computed at the same time, each in a process of its own.
    most_children: int = 1
    #: CPU cores of each of them.
    workers: int = 2
    #: Submitted instances that wait for that.
    most_queued: int = 8
    #: Questions that wait for an answer.
    most_questions: int = 32
    #: Event streams that are open at the same time.
    most_streams: int = 200
    #: Submitted instances whose outcome is kept, and for how many seconds at most.
    most_kept: int = 64
    keep_seconds: float = 3600.0
    #: Seconds between two looks at the source, and between two heartbeats of an event stream.
    poll: float = 1.0
    heartbeat: float = 15.0
    #: Seconds for which the body of a request may be on its way.
    patience: float = 30.0

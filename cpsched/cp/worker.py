"""The worker process: ``python -m cpsched.cp.worker BYTES FILE`` answers requests on an open file, by its number.

It uses no more than the given bytes of memory.
"""

import contextlib
import os
import queue
import resource
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from cpsched.cp.messages import Descend, Failed, Prove, Proven, Reply, Request, Solve


def main() -> None:
    """Answer until the engine is gone."""
    limits = (int(sys.argv[1]), *resource.getrlimit(resource.RLIMIT_AS))
    limit = min(bytes_ for bytes_ in limits if bytes_ != resource.RLIM_INFINITY)  # never more than it was given
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    pipe: Connection[Reply, Request] = Connection(int(sys.argv[2]))
    lock = threading.Lock()

    def tell(reply: Reply) -> None:
        with lock:
            pipe.send(reply)

    arrived: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, arrived), daemon=True).start()
    while True:
        request = arrived.get()
        try:
            _answer(request, tell, lambda: not arrived.empty())
        except MemoryError:
            tell(Failed(f"ran out of memory: it may use {limit // 2**20} MiB"))
        except Exception as error:  # every error is reported to the engine
            tell(Failed(f"{type(error).__name__}: {error}"))


def _answer(request: Request, tell: Callable[[Reply], None], is_asked: Callable[[], bool]) -> None:
    """Do what is asked for; only what that needs is loaded.

    `tell`: sends a reply. `is_asked`: whether there is another request.
    """
    match request:
        case Solve():
            from cpsched.cp.solver import solve

            solve(request, tell)
        case Prove():
            from cpsched.cp.bounds import lower_bound

            found = lower_bound(
                request.instance, request.jobs, seconds=request.remaining, seed=request.seed, enough=request.enough
            )
            tell(Proven(None, "") if found is None else Proven(found.value, found.how))
        case Descend():
            from cpsched.cp.neighbourhoods.descent import descend

            descend(request, tell, is_asked)


def _listen(pipe: "Connection[Reply, Request]", arrived: queue.SimpleQueue[Request]) -> None:
    """Read requests; when the engine is gone, the process ends at once."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            arrived.put(pipe.recv())
    os._exit(0)


if __name__ == "__main__":
    main()

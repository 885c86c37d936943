"""Jobs that stay the manager's: those that an instance cannot say, and those that wait for one of them."""

from collections.abc import Iterable

from cpsched.domain import Job


class Inexpressible(Exception):  # noqa: N818 - no error: such a job stays the manager's
    """The job asks for something that an instance cannot say; the message says what, in words.

    `is_for_manager`: whether the manager's own scheduler is to start it.
    """

    def __init__(self, reason: str, *, is_for_manager: bool = True) -> None:
        self.is_for_manager = is_for_manager
        super().__init__(reason)


def without_awaited(jobs: dict[str, Job], waiting: Iterable[str]) -> dict[str, Inexpressible]:
    """Take out the jobs that wait for one that is not there, until none is left, and return each with its reason.

    `waiting`: those of the jobs that may wait for others.
    """
    names, found = list(waiting), dict[str, Inexpressible]()
    while lost := [key for key in names if key in jobs and any(link.job not in jobs for link in jobs[key].after)]:
        for key in lost:
            awaited = next(link.job for link in jobs[key].after if link.job not in jobs)
            found[key] = Inexpressible(f"it waits for job {awaited}, which cannot be planned", is_for_manager=False)
        for key in lost:
            del jobs[key]
    return found

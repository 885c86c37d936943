"""What an instance says of its running jobs that can hardly be so: warnings, since what runs is a fact."""

from collections.abc import Iterator, Mapping, Sequence

from cpsched.errors import Fault
from cpsched.verify.model import Job, NodeClass
from cpsched.verify.sweep import Use, overloads


def allocation_path(job: str, members: Mapping[str, object], index: int) -> str:
    """Return where the allocation of a segment is: a job without segments has one of its own."""
    return f"{job}.running.segments[{index}].allocation" if "segments" in members else f"{job}.running.allocation"


def oddities_of(
    path: str, members: Mapping[str, object], job: Job, nodes: Mapping[str, NodeClass], now: int
) -> Iterator[Fault]:
    """Yield what is odd about one running job: its start, its nodes, how much it has.

    `path`, `members`: where the job is, and the keys of its ``running``. `job`, `nodes`, `now`: what has been read.
    """
    if job.running[0].start < job.submit:
        yield Fault(
            f"{path}.running.start", f"started at {job.running[0].start}, before it was submitted at {job.submit}"
        )
    for index, segment in enumerate(job.running):
        for position, held in enumerate(segment.allocation):
            if segment.start <= now < segment.end and nodes[held.node].state == "down":
                where = f"{allocation_path(path, members, index)}[{position}].node"
                yield Fault(where, f"runs on {held.node}, which is down")
    if len(job.running) not in (1, len(job.steps)):
        return  # it is not known which of its steps it is in
    for index, segment in enumerate(job.running):
        for name, asked in job.steps[index].request.totals().items():
            has = sum(held.resources.get(name, 0) for held in segment.allocation)
            if has < asked and not (name == "cores" and job.malleable is not None):
                message = f"has less than it asks for: {has} {name}, asked for are {asked}"
                yield Fault(allocation_path(path, members, index), message)
                return


def overcommitments(
    running: Sequence[tuple[str, Mapping[str, object], Job]],
    nodes: Mapping[str, NodeClass],
    licenses: Mapping[str, int],
) -> Iterator[Fault]:
    """Yield where running jobs together take more than there is: for each node and resource at its first time.

    `running`: where each running job is, the keys of its ``running``, and the job. `nodes`, `licenses`: what there is.
    """
    uses: dict[str | None, list[Use[str]]] = {}
    for path, members, job in running:
        for index, segment in enumerate(job.running):
            for position, held in enumerate(segment.allocation):
                where = f"{allocation_path(path, members, index)}[{position}]"
                uses.setdefault(held.node, []).append(Use(segment.start, segment.end, held.resources, where))
        if job.licenses:
            start, end = job.running[0].start, job.running[-1].end
            uses.setdefault(None, []).append(Use(start, end, job.licenses, f"{path}.licenses"))
    for node, of_node in uses.items():
        has = licenses if node is None else nodes[node].resources
        owner = "the cluster" if node is None else f"node {node}"
        said: set[str] = set()
        for overload in overloads(of_node, has):
            name = overload.resource
            if name not in said:
                said.add(name)
                last = [use.owner for use in of_node if use.start <= overload.start < use.end and name in use.amounts][
                    -1
                ]
                there = f"{owner} has {has.get(name, 0)} {name}, got {overload.level} from {overload.start}"
                yield Fault(last, f"running jobs take more than there is: {there}")

"""`Model`: a window built in Python."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from cpsched.arguments import Seconds, Seed, Steps, Workers, at_the_door, plain_argument
from cpsched.domain import Instance, Plan
from cpsched.formats import fold_hostlist, instance_to_document, parse_instance
from cpsched.portfolio import OnPlan, solve

if TYPE_CHECKING:
    import pandas as pd
    from networkx import Graph


#: A request as text, ``"8:ncpus=2"``; as one chunk or several, ``{"count": 8, "resources": {"cores": 2}}``; or the
#: number of cores of a single chunk.
Chunks = str | int | Mapping[str, object] | Sequence[Mapping[str, object]]
#: What a document has as an object.
Entry = Mapping[str, object]


class Model:
    """A window that is built line by line, checked as a document is, and solved. Mutable.

    Each ``add_`` method says one entry of the instance document, and its keywords are the keys of that entry:
    ``docs/formats.md`` says what each means; None leaves a key out. Nothing is checked before `instance` or `solve`,
    which then tell all faults at once.

    Parameters
    ----------
    name
        Of the instance.
    now
        The second at which it is planned: no job starts earlier.
    objective
        A term such as ``"slowdown"``, weights of several, or a list of such aims in order.
    epoch, time_zone, priorities, usage, fair_share, preemption, outages
        As the instance has them.

    Examples
    --------
    >>> model = Model()
    >>> model.add_nodes("n[1-2]", cores=4)
    >>> first = model.add_job("2:ncpus=4", walltime=600)
    >>> model.add_job("ncpus=1", walltime=60, after=[first], id="report")
    'report'
    >>> plan = model.solve(budget=1)
    >>> plan["report"].start
    600
    """

    def __init__(
        self,
        name: str = "model",
        *,
        now: SupportsIndex = 0,
        objective: str | Mapping[str, float] | Sequence[str | Sequence[str] | Mapping[str, float]] | None = None,
        epoch: str | None = None,
        time_zone: str | None = None,
        priorities: str | None = None,
        usage: Sequence[Entry] | None = None,
        fair_share: Entry | None = None,
        preemption: Entry | None = None,
        outages: Sequence[Entry] | None = None,
    ) -> None:
        self._document: dict[str, Any] = {"format": "cpsched-instance/1", **_entry(locals()), "cluster": {"nodes": []}}

    @classmethod
    @at_the_door
    def from_instance(cls, instance: Instance) -> Self:
        """Return a model that says what an instance says, to be changed."""
        model = cls()
        model._document = instance_to_document(instance)
        return model

    @classmethod
    @at_the_door
    def from_dict(cls, document: Mapping[str, object]) -> Self:
        """Return a model that says what an instance document says, to be changed.

        Parameters
        ----------
        document
            As JSON has it; numpy's numbers, tuples and mappings are taken too. What is wrong with it is told by
            `instance` and `solve`.
        """
        model = cls()
        model._document |= plain(document)
        return model

    @classmethod
    def from_frame(cls, jobs: pd.DataFrame, name: str = "model", **keywords: Any) -> Self:
        """Return a model with the jobs of a table; its nodes and queues are added to it.

        Parameters
        ----------
        jobs
            A row for each job, its columns named as the keywords of `add_job`: ``id``, ``request``, ``walltime``,
            ``submit``, ``queue`` and so on. Missing cells are left out. A time may be a timestamp, in seconds since the
            model's `epoch` then; a duration may be a timedelta.
        name
            Of the instance.
        keywords
            As `Model` has them.

        Raises
        ------
        ValueError
            If `add_job` has no keyword for a column, or a timestamp has no `epoch` to count from.
        """
        from cpsched.modelling.frames import rows_of

        model = cls(name, **keywords)
        for row in rows_of(jobs, tuple(signature(cls.add_job).parameters)[1:], epoch=model._document.get("epoch")):
            model.add_job(**row)
        return model

    def to_frame(self) -> pd.DataFrame:
        """Return the jobs as a table, which `from_frame` reads."""
        from cpsched.modelling.frames import jobs_frame

        return jobs_frame(self._document.get("jobs", []))

    def add_nodes(
        self,
        names: str | Sequence[str],
        resources: Mapping[str, SupportsIndex] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        priority: int | None = None,
        state: str | None = None,
        admits: Sequence[Entry] | None = None,
        keep_free: Sequence[Entry] | None = None,
        **amounts: SupportsIndex,
    ) -> None:
        """Add nodes that differ in nothing but their names.

        Parameters
        ----------
        names
            A host list, ``"n[1-16]"``, or the names.
        resources
            What each node has, where a resource is called like another parameter.
        properties, priority, state, admits, keep_free
            As in ``cluster.nodes``.
        amounts
            What each node has: ``cores=16, mem=65536, gpus=2``; memory in MiB.
        """
        entry = _entry(locals(), but=("resources", "amounts"))
        has = {**plain_argument(resources or {}, Mapping[str, object], name="resources"), **amounts}
        self._document["cluster"]["nodes"].append(entry | {"resources": plain(has)})

    def add_license(self, name: str, count: SupportsIndex, *, consumed: bool = False) -> None:
        """Add a licence of the cluster, and how many there are; `consumed`: what a job takes is gone for good."""
        name = plain_argument(name, str, name="name")
        self._document["cluster"].setdefault("licenses", {})[name] = plain(count)
        if consumed:
            self._document["cluster"].setdefault("consumed", []).append(name)

    def add_topology(self, level: str, groups: Mapping[str, str], *, slowdown: SupportsIndex | None = None) -> None:
        """Add a level of the topology: its groups of nodes, by name: ``{"s1": "n[1-4]", "s2": "n[5-8]"}``. `slowdown`:
        percent by which simulated jobs in several groups take longer.
        """
        level = plain_argument(level, str, name="level")
        self._document["cluster"].setdefault("topology", {})[level] = plain(groups)
        if slowdown is not None:
            self._document["cluster"].setdefault("slowdown", {})[level] = plain(slowdown)

    def add_links(
        self,
        graph: Graph,
        switches: str | Sequence[str] = (),
        *,
        levels: Mapping[str, SupportsIndex] | None = None,
        slowdown: Mapping[str, SupportsIndex] | None = None,
    ) -> None:
        """Give the topology as a networkx graph of nodes and switches, which is reduced to levels.

        Parameters
        ----------
        graph
            Its edges may have a `length`, a whole number (default 1).
        switches
            Its vertices that are no nodes: a host list, ``"s[1-16]"``, or the names.
        levels
            The distance of each level by its name; default: all distances.
        slowdown
            By level: percent by which simulated jobs in several groups take longer.
        """
        edges = graph.edges(data="length", default=1)
        links = [
            {"from": _host_list([one]), "to": _host_list([other]), "length": length} for one, other, length in edges
        ]
        said = _entry({"switches": _host_list(switches) or None, "links": links, "levels": levels})
        self._document["cluster"].setdefault("topology", {}).update(said)
        if slowdown is not None:
            self._document["cluster"]["slowdown"] = plain(slowdown)

    def add_queue(
        self,
        name: str,
        expected_wait: SupportsIndex,
        *,
        priority: SupportsIndex | None = None,
        weight: float | None = None,
        max_walltime: SupportsIndex | None = None,
        max_wait: Entry | None = None,
        nodes: str | Mapping[str, str] | None = None,
    ) -> str:
        """Add a queue, and return its name.

        Parameters
        ----------
        name
            As jobs say it.
        expected_wait
            Seconds that its jobs may be expected to wait: they weigh the waits in the objective.
        priority, weight, max_walltime, max_wait, nodes
            As in ``queues``.
        """
        queue = _entry(locals(), but=("name",))
        self._document.setdefault("queues", {})[plain_argument(name, str, name="name")] = queue
        return name

    def add_job(
        self,
        request: Chunks | None = None,
        walltime: SupportsIndex | None = None,
        *,
        id: str | None = None,
        queue: str | None = None,
        user: str | None = None,
        group: str | None = None,
        project: str | None = None,
        submit: SupportsIndex | None = None,
        after: str | Entry | Sequence[str | Entry] | None = None,
        not_before: SupportsIndex | None = None,
        start_at: SupportsIndex | None = None,
        deadline: SupportsIndex | None = None,
        priority: SupportsIndex | None = None,
        weight: float | None = None,
        place: str | None = None,
        licenses: Mapping[str, SupportsIndex] | None = None,
        reservation: str | None = None,
        steps: Sequence[tuple[SupportsIndex, Chunks] | Entry] | None = None,
        malleable: Sequence[float] | Entry | None = None,
        alternatives: Sequence[tuple[SupportsIndex, Chunks] | Entry] | None = None,
        moldable: Entry | None = None,
        prefer: Entry | None = None,
        resizable: Entry | None = None,
        expand_limit: float | None = None,
        array: str | Entry | None = None,
        told: SupportsIndex | Entry | None = None,
        preemptible: Entry | None = None,
        running: Entry | None = None,
        expected: SupportsIndex | None = None,
        runtime: SupportsIndex | None = None,
    ) -> str:
        """Add a job, and return its id.

        Parameters
        ----------
        request
            As text, ``"8:ncpus=2:mem=4g"``, as parts, or the number of cores of a single chunk.
        walltime
            Seconds.
        id
            Default: ``job-1``, ``job-2``, ...
        submit
            When it arrived; default: `now`.
        after
            The job whose end it waits for, or several: as ids or as ``{"job": id, "type": "after", "delay": 60}``.
        steps
            Of an evolving job, in place of `request` and `walltime`: (walltime, request) of each.
        malleable
            Shares of its cores on which it can run, ``[0.5]``, or ``{"shares": [0.5], "model": "worst"}``.
        alternatives
            What it can run with instead: (walltime, request) of each; a plan chooses one.
        moldable
            The same in short, other numbers of its chunks: ``{"min": 1, "max": 8, "model": "amdahl", "serial": 0.02}``.
        prefer
            In one group of a level if that is worth so many seconds of waiting: ``{"level": "switch", "cost": 600}``.
        array
            The indices of an array, ``"0-9"``.
        told
            The start that its user was told, or that with a price.
        queue, user, group, project, priority, weight, place, licenses, reservation, preemptible, resizable, running
            As in ``jobs``.
        not_before, start_at, deadline
            The seconds before which it does not start, at which it starts, and by which it ends.
        expand_limit, expected, runtime
            As in ``jobs``; the last two are seconds.
        """
        entry = _entry(locals())
        jobs = self._document.setdefault("jobs", [])
        entry = {"id": f"job-{len(jobs) + 1}", "submit": self._document["now"]} | entry
        jobs.append(entry)
        return str(entry["id"])

    def add_limit(
        self,
        resource: str,
        items: str | int | None = None,
        *,
        user: str | None = None,
        group: str | None = None,
        each: str | None = None,
        duration: SupportsIndex | None = None,
        area: SupportsIndex | None = None,
        area_scope: str | None = None,
        validity: str | Entry | None = None,
        soft: bool | None = None,
    ) -> None:
        """Add a limit on what users or groups have of a resource.

        Parameters
        ----------
        resource
            A resource, a licence, ``"jobs"``, ``"arrayjobs"``, or ``"*"``.
        items
            The most at any second: a number, or ``"30/45%"``.
        user, group, each
            The consumer: one of these; ``each="user"`` is every user by itself.
        duration, area, area_scope, validity, soft
            As in ``limits``.
        """
        entry = _entry(locals())
        consumer = {key: entry.pop(key) for key in ("user", "group", "each") if key in entry}
        self._add("limits", {"consumer": consumer} | entry)

    def add_pool(
        self,
        resource: str,
        items: str | int,
        open_to: Entry,
        *,
        nodes: str | None = None,
        validity: str | Entry | None = None,
        otherwise: Entry | None = None,
    ) -> None:
        """Add a free pool: what all jobs to which it is not open leave free together.

        Parameters
        ----------
        resource
            A resource of nodes.
        items
            How much of it: a number, or ``"10/20%"``.
        open_to
            The jobs that it is open to: ``{"users": ["eve"]}``, ``{"asks_for": ["gpus"]}``, ``{"max": {"cores": 4}}``.
        nodes, validity, otherwise
            As in ``free_pools``.
        """
        self._add("free_pools", _entry(locals()))

    def add_reservation(
        self,
        id: str,
        start: SupportsIndex | None = None,
        end: SupportsIndex | None = None,
        request: Chunks | None = None,
        *,
        kind: str | None = None,
        nodes: str | None = None,
        users: Sequence[str] | None = None,
        validity: Entry | None = None,
        place: str | None = None,
        licenses: Mapping[str, SupportsIndex] | None = None,
        allocation: Sequence[Entry] | None = None,
    ) -> str:
        """Add a reservation, and return its id.

        Parameters
        ----------
        id
            As jobs say it.
        start, end
            Seconds; in place of them ``validity`` where it recurs.
        request
            What it asks for; in place of it ``nodes``, a host list.
        kind
            ``"downtime"``: no job may use it; default: ``"users"``.
        nodes, users, validity, place, licenses, allocation
            As in ``reservations``.
        """
        self._add("reservations", _entry(locals()))
        return id

    def _add(self, section: str, entry: dict[str, Any]) -> None:
        self._document.setdefault(section, []).append(entry)

    def instance(self) -> Instance:
        """Check the model, and return the instance.

        Raises
        ------
        DocumentError
            With everything that is wrong with it; paths are those of the document, ``jobs[3].walltime``.
        """
        return parse_instance(self._document, source="the model")

    @at_the_door
    def solve(
        self,
        *,
        engine: str = "portfolio",
        budget: Seconds = 10.0,
        seed: Seed = 0,
        workers: Workers = 2,
        bound: Seconds = 0.0,
        warm: Plan | None = None,
        solver: str = "gecode",
        steps: Steps | None = None,
        on_plan: OnPlan | None = None,
        live: bool = False,
    ) -> Plan:
        """Plan every job, verify the plan, and return it.

        Parameters
        ----------
        engine, budget, seed, workers, bound, warm, solver, steps, on_plan, live
            As `cpsched.solve` has them; budget and bound are seconds.

        Raises
        ------
        DocumentError
            With everything that is wrong with the model.
        EngineError
            As `cpsched.solve`.
        """
        given = {key: value for key, value in locals().items() if key != "self"}
        return solve(self.instance(), **given)

    def __repr__(self) -> str:
        jobs, kinds = len(self._document.get("jobs", [])), len(self._document["cluster"]["nodes"])
        words = f"{jobs} job{'s' * (jobs != 1)}, {kinds} kind{'s' * (kinds != 1)} of nodes"
        return f"<Model {self._document['name']!r}: {words}>"


def plain(value: object) -> Any:
    """Return a value as JSON has it: numpy's scalars as Python's numbers, mappings as dicts, sequences as lists.

    What is none of these is returned as it is, and the reader of documents refuses it.
    """
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return value


def _entry(given: Mapping[str, Any], *, but: Container[str] = ()) -> dict[str, Any]:
    """Return an entry of the document of a method's arguments, which are its keys: those that are given (not None)."""
    keys = (key for key, value in given.items() if value is not None and key != "self" and key not in but)
    return {key: _WRITTEN[key](given[key]) if key in _WRITTEN else plain(given[key]) for key in keys}


def _host_list(names: Any) -> Any:
    names = plain(names)
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return fold_hostlist(names) if is_list else names


def _keyed(key: str) -> Callable[[Any], Any]:
    """Return how an object is written of which one key can be given alone."""
    return lambda value: plain(value if isinstance(value, Mapping) else {key: value})


def _each(make: Callable[[Any], Any], values: object) -> Any:
    """Return the entries that are made of the values of a list; what is no list is left to the reader to refuse."""
    values = plain(values)
    return [make(value) for value in values] if isinstance(values, list) else values


def _dependency(job: Any) -> Any:
    return {"job": job, "type": "afterany"} if isinstance(job, str) else job


def _step(step: Any) -> Any:
    """Return an entry of ``steps`` of a pair (walltime, request)."""
    is_pair = isinstance(step, list) and len(step) == 2
    return {"walltime": step[0], "request": _request(step[1])} if is_pair else step


def _request(chunks: Chunks) -> Any:
    if isinstance(chunks, Mapping):
        return [_chunk(chunks)]
    chunks = plain(chunks)
    if isinstance(chunks, int):
        return f"ncpus={chunks}"
    return [_chunk(chunk) for chunk in chunks] if isinstance(chunks, list) else chunks


def _chunk(chunk: Any) -> Any:
    """Return a kind of chunks, one of them where it does not say how many."""
    return {"count": 1} | plain(chunk) if isinstance(chunk, Mapping) else chunk


#: How arguments are written that can be given in short.
_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "names": _host_list,
    "request": _request,
    "after": lambda jobs: _each(_dependency, [jobs] if isinstance(jobs, str | Mapping) else jobs),
    "steps": partial(_each, _step),
    "alternatives": partial(_each, _step),
    "malleable": _keyed("shares"),
    "array": _keyed("indices"),
    "told": _keyed("start"),
    "items": lambda items: items if isinstance(items, str) else str(plain(items)),
}

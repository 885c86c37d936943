"""Policies and engines of others: as ``module:name``, and as entry points of a package that is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpsched.domain import Instance
from cpsched.errors import DocumentError, EngineError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.policies import factory_of, make_scheduler, scheduler_names
from cpsched.lab.sim import BackfillRule, Decision, History, News, Order, QueueRule, Scheduler, Site, Start, simulate
from cpsched.portfolio import engine_names, solve
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_workloads import BusyMachine
from tests.sim.played import starts

OURS = '''
"""A package with policies of its own."""

from cpsched.rules import Policy, PolicyEngine, insert
from cpsched.lab.sim import BackfillRule, Decision, QueueRule

by_walltime = QueueRule(name="by_walltime", backfill=BackfillRule.NOBODY, key=lambda job: job.walltime)
longest = PolicyEngine(
    Policy(name="longest", order=lambda _, jobs: sorted(jobs, key=lambda job: -job.walltime), serve=insert)
)
text = "no scheduler"


class Last:
    """The last that came is served first."""

    name = "last"

    def __init__(self, most: int = 100, whatever="not annotated", odd: "NoSuchType" = None):
        self.most = most

    def begin(self, site):
        pass

    def decide(self, site, news):
        draft = site.draft()
        for job in site.queue[::-1][: self.most]:
            draft.start(job)
        return draft.decision()


class Engine:
    """An engine that is made by its class."""

    name = "engine"
    prepare = longest.prepare
    unsupported = longest.unsupported
    plan = longest.plan


def nothing():
    """Make what is no scheduler."""
    return 3


def needing(size):
    """Need a parameter."""
    return by_walltime
'''
ENTRY_POINTS = """[cpsched.policies]
last_come = ours_of_test:Last
easy = ours_of_test:Last
broken = ours_of_test_that_is_not_there:Last

[cpsched.engines]
longest_of_ours = ours_of_test:longest
"""


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with a module and entry points, as pip does it; yield its folder."""
    site = tmp_path / "site"
    about = site / "ours_of_test-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "ours_of_test.py").write_text(OURS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ours-of-test\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    yield site
    sys.modules.pop("ours_of_test", None)


def queue_of_three() -> Instance:
    """Return three jobs that come at once on a machine for one of them."""
    lengths = {"a": 300, "b": 100, "c": 200}
    jobs = [waiting(name, walltime, chunk(cores=4), runtime=50) for name, walltime in lengths.items()]
    return window([nodes("n1", cores=4)], *jobs)


def faults_of(name: str, **parameters: object) -> str:
    """Return what a scheduler is refused with."""
    with pytest.raises(DocumentError) as caught:
        make_scheduler(name, parameters)
    return str(caught.value)


@pytest.mark.usefixtures("ours")
def test_objects_of_a_module_are_schedulers() -> None:
    """A rule, a class with parameters and an engine of a module play a workload, and their records are right."""
    workload = queue_of_three()
    for name, parameters, order in (
        ("ours_of_test:by_walltime", {}, "bca"),
        ("ours_of_test:Last", {"most": 1, "whatever": [1], "odd": 2}, "cba"),
        ("ours_of_test:longest", {}, "acb"),
        ("ours_of_test:Engine", {"seed": 1}, "acb"),
        ("last_come", {}, "cba"),
        ("longest_of_ours", {}, "acb"),
        ("easy", {}, "abc"),
    ):
        history = simulate(workload, make_scheduler(name, parameters))
        begun = starts(history)
        assert "".join(sorted(begun, key=lambda job: begun[job])) == order, name
        assert verify(instance_to_document(workload), plan_to_document(history.record())) == ()


@pytest.mark.usefixtures("ours")
def test_engines_of_others_plan() -> None:
    """`solve` takes an engine by its module or by its entry point; the plan is verified, and names the engine."""
    workload = queue_of_three()
    for engine in ("ours_of_test:longest", "ours_of_test:Engine", "longest_of_ours"):
        plan = solve(workload, engine=engine, budget=0)
        assert (plan.engine.name, plan["a"].start, plan["c"].start, plan["b"].start) == (engine, 0, 300, 500)
    assert "longest_of_ours" in engine_names()
    with pytest.raises(EngineError, match="longest_of_ours, or MODULE:NAME, got 'longest_of_hours'"):
        solve(workload, engine="longest_of_hours")
    with pytest.raises(DocumentError, match="prepare, unsupported and plan, got Last"):
        solve(workload, engine="ours_of_test:Last")


@pytest.mark.usefixtures("ours")
def test_what_is_wrong_is_said() -> None:
    """Modules, names, objects and parameters that are not as expected are refused in words."""
    assert "did you mean last_come" in faults_of("last_came")
    assert {"last_come", "longest_of_ours", "easy"} <= set(scheduler_names())
    assert scheduler_names().count("easy") == 1
    assert "or in the working directory" in faults_of("no_such_module:Last")
    assert "or in the working directory" in faults_of("broken")
    assert "Expected a name of the module 'ours_of_test', got 'Lost'" in faults_of("ours_of_test:Lost")
    assert "Expected MODULE:NAME" in faults_of("ours_of_test:")
    assert "Expected MODULE:NAME" in faults_of("../ours:Last")
    assert "makes a scheduler, got str" in faults_of("ours_of_test:text")
    assert "begin and decide, got int" in faults_of("ours_of_test:nothing")
    assert "most: Expected an integer, got 'x'" in faults_of("ours_of_test:Last", most="x")
    assert "did you mean most?" in faults_of("ours_of_test:Last", mist=1)
    assert "size: Expected a value" in faults_of("ours_of_test:needing")
    assert factory_of("no_such_scheduler") is None


def test_a_module_that_fails_is_told_with_its_cause(ours: Path) -> None:
    """The error within a module is in the message, and is the cause of the refusal."""
    (ours / "failing_of_test.py").write_text("import no_such_library\n")
    with pytest.raises(DocumentError, match=r"cannot be imported: ModuleNotFoundError.*no_such_library") as caught:
        make_scheduler("failing_of_test:X", {})
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("seed", range(8))
def test_a_key_of_ones_own_orders_the_queue(seed: int) -> None:
    """A rule with the walltime as its key starts jobs as the rule by walltimes does."""
    workload = BusyMachine(seed).workload()
    for backfill in (BackfillRule.NOBODY, BackfillRule.ANYBODY, BackfillRule.NOT_DELAYING):
        ours = QueueRule(name="ours", backfill=backfill, key=lambda job: job.walltime)
        usual = QueueRule(name="usual", backfill=backfill, order=Order.WALLTIME)
        assert starts(simulate(workload, ours)) == starts(simulate(workload, usual))


def test_a_key_is_a_number_and_sees_no_runtime() -> None:
    """A key that returns something else is refused with the job; the real runtime is hidden."""
    workload = queue_of_three()
    rule = QueueRule(name="ours", backfill=BackfillRule.NOBODY, key=lambda job: job.runtime)  # type: ignore[arg-type,return-value]  # the fault
    with pytest.raises(ValueError, match="a finite number as the key of job a, got None"):
        simulate(workload, rule)
    with pytest.raises(ValueError, match="a finite number as the key of job a, got nan"):
        simulate(workload, QueueRule(name="ours", backfill=BackfillRule.NOBODY, key=lambda _: float("nan")))
    with pytest.raises(ValueError, match="without order, expect and reservations"):
        QueueRule(name="ours", backfill=BackfillRule.RESERVING, key=lambda _: 1)


class _Saying:
    """A scheduler that decides what it is given."""

    name = "saying"

    def __init__(self, *, said: object) -> None:
        self._said = said

    def begin(self, site: Site) -> None:
        """Remember nothing."""

    def decide(self, site: Site, news: News) -> Decision:
        """Return what it was given, or what that makes of the site."""
        return self._said(site) if callable(self._said) else self._said  # type: ignore[return-value]  # faults too


def error_of(said: object) -> str:
    """Return how a decision is refused."""
    jobs = [waiting("a", 60, chunk(cores=4), runtime=50), waiting("b", 60, chunk(cores=4), runtime=50, submit=10)]
    workload = window([nodes("n1", cores=4)], *jobs)
    scheduler: Scheduler = _Saying(said=said)
    with pytest.raises(EngineError) as caught:
        simulate(workload, scheduler)
    return str(caught.value)


def test_wrong_decisions_say_what_to_do() -> None:
    """What is no decision, or starts what cannot start, is refused with the reason and the way out."""

    def first_on(site: Site) -> Start:
        fit = site.fit_now(0)
        assert fit is not None
        return fit

    assert "expected a Decision, such as Decision()" in error_of(None)
    assert "starts job b at 0, but it is not in the queue" in error_of(
        lambda site: Decision(starts=[Start(1, first_on(site).entries)])
    )
    twice = error_of(lambda site: Decision(starts=[first_on(site), first_on(site)]))
    assert "starts job a at 0, but it runs since 0" in twice
    assert "site.draft().start(job)" in twice
    assert "expected a second after 0" in error_of(lambda site: Decision(wake=0))


def test_a_draft_knows_what_it_has_started() -> None:
    """The second job does not fit beside the first one of the same draft; what is free is without both."""
    seen: list[object] = []

    class Looking:
        name = "looking"

        def begin(self, site: Site) -> None:
            """Remember nothing."""

        def decide(self, site: Site, news: News) -> Decision:
            draft = site.draft()
            seen.append([draft.free["cores"], *(draft.start(job) for job in (0, 0, 1, 2)), draft.free["cores"]])
            return draft.decision()

    cores_of = {"a": 3, "b": 2, "c": 1}
    jobs = [waiting(name, 60, chunk(cores=cores), runtime=50) for name, cores in cores_of.items()]
    history: History = simulate(window([nodes("n1", cores=4)], *jobs), Looking())
    assert seen[0] == [4, True, False, False, True, 0]
    assert starts(history) == {"a": 0, "c": 0, "b": 50}

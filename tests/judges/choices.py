"""Tiny windows with rules of a site and jobs with alternatives: each combination of choices is a window of rigid jobs,
which the oracle tries out; the verifier and the engines are asked about all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from random import Random

from cpsched.engine import Board, Budget
from cpsched.formats import parse_instance, plan_to_document
from cpsched.metrics import least_value, objective_value
from cpsched.planner import PlannerEngine, placeable_beside, problem_of
from cpsched.portfolio import Team, solve
from cpsched.search import Search
from cpsched.verify import Judge
from tests.cp.cp_here import CpHere
from tests.judges.bounds import DEFECTS
from tests.judges.ruled_windows import Document, features_of, ruled_window
from tests.judges.rules import RulesCase, mutants, plan_document, read_plan
from tests.oracle.brute_force import TooLargeError, Window

__all__ = ["choosing_window", "judge_choices"]

#: Changes of the best plan of each combination that are judged.
MUTANTS = 4
#: Steps of the search, deterministic time of CP-SAT, and seconds that nothing needs.
SEARCH_STEPS, DETERMINISTIC_TIME, ENOUGH = 40, 2.0, 60.0
#: The most jobs that wait in a window.
MOST_WAITING = 3
NEAR = 1e-9


def choosing_window(seed: int) -> Document:
    """Draw a window of `ruled_window` with few jobs, of which one or two have an alternative, for waits alone."""
    random, document = Random(f"choices {seed}"), ruled_window(seed)
    document["objective"] = random.choice(["wait", "weighted_wait"])
    waiting = [job for job in document["jobs"] if "running" not in job]
    left = {job["id"] for job in waiting[MOST_WAITING:]}
    jobs = [job for job in document["jobs"] if job["id"] not in left]
    document["jobs"] = [
        {**job, "after": [one for one in job["after"] if one["job"] not in left]} if "after" in job else job
        for job in jobs
    ]
    free = [job for job in document["jobs"] if "running" not in job]
    for job in random.sample(free, min(len(free), random.choice([1, 1, 2]))):
        job.pop("expected", None)
        unit = 300 if "epoch" in document else 1
        chunk = {"count": random.choice([1, 1, 2]), "resources": {"cores": random.choice([1, 1, 2, 3])}}
        other = {"walltime": random.randint(1, 5) * unit, "request": [chunk]}
        if (other["walltime"], other["request"]) != (job["walltime"], job["request"]):
            job["alternatives"] = [other]
    if seed % 5 in (0, 4):
        _prefer_nearness(document, random)
    return document


def _prefer_nearness(document: Document, random: Random) -> None:
    """Let jobs with alternatives outside of reservations prefer one group of nodes, at a cost, in place of these."""
    names = [name for entry in document["cluster"]["nodes"] for name in entry["names"].split(",")]
    document["cluster"]["topology"] = {"rack": {"r1": ",".join(names[:1]), "r2": ",".join(names[1:]) or names[0]}}
    if len(names) == 1:
        document["cluster"]["topology"]["rack"].pop("r2")
    for job in document["jobs"]:
        if "alternatives" in job and "reservation" not in job:
            place = job.get("place", "free")
            own = {"walltime": job["walltime"], "request": job["request"], "place": place}
            job["place"] = f"{place}:within=rack"
            job["alternatives"] = [own | {"cost": random.choice([0, 1, 2, 4, 9]) * (300 if "epoch" in document else 1)}]


def judge_choices(seed: int, *, engines: bool = True) -> RulesCase:
    """Draw a window, and compare what oracle, verifier and engines make of it."""
    document = choosing_window(seed)
    case = RulesCase(document=document, features=features_of(document))
    try:
        _Choices(case, seed).judge(engines=engines)
    except TooLargeError:
        case.is_too_large = True
    return case


class _Choices:
    """A window, and the windows of rigid jobs that its choices make of it; mutable: the case notes what comes of it."""

    def __init__(self, case: RulesCase, seed: int) -> None:
        self.case, self.seed, self.document = case, seed, case.document
        self.choosing = [job for job in self.document["jobs"] if "alternatives" in job]
        counts = [range(1 + len(job["alternatives"])) for job in self.choosing]
        self.windows = {numbers: Window(self._rigid(numbers)) for numbers in product(*counts)}
        self.instance = parse_instance(self.document, source=f"case {seed}")

    def _rigid(self, numbers: tuple[int, ...]) -> Document:
        """Return the window in which each job with alternatives has one of its choices."""
        chosen = dict(zip((job["id"] for job in self.choosing), numbers, strict=True))

        def rigid(job: Document) -> Document:
            own = {key: value for key, value in job.items() if key != "alternatives"}
            number = chosen.get(job["id"], 0)
            found = own | job["alternatives"][number - 1] if number else own
            return {key: value for key, value in found.items() if key != "cost"}

        return {**self.document, "jobs": [rigid(job) for job in self.document["jobs"]]}

    def judge(self, *, engines: bool) -> None:
        """Compare the verifier with the oracle on each combination, and the engines with the best of all."""
        judge, best = Judge(self.document), dict[tuple[int, ...], tuple[int, float]]()
        for numbers, window in self.windows.items():
            found = window.best()
            best[numbers] = -len(found.jobs), found.value + self._stretched(numbers)
            plans = [(found.slices, found.jobs), *mutants(window, found.slices, found.jobs, Random(self.seed))]
            for slices, jobs in plans[: 1 + MUTANTS]:
                faults = [*window.faults(slices, jobs), *(f"{name} could be had" for name in window.forgotten(slices))]
                document = self._with_choices(plan_document(window, slices, jobs), numbers)
                said = [one for one in judge.violations(document, claims=False) if one.rule != "objective"]
                self.case.verdicts[said[0].rule if said else "none"] += 1
                if bool(faults) != bool(said):
                    self.case.failures.append(f"choices {numbers}: oracle {faults}, verifier {[*map(str, said)]}")
        if engines:
            first = PlannerEngine()
            search = Search(max_steps=SEARCH_STEPS)
            teams = {"planner": Team(first=first), "search": Team(first=first, lanes=((search,),))}
            for name, team in teams.items():
                self._plan(name, team, min(best.values()), len(self.instance.elements()) - len(window.running))
            self._prove(min(best.values()))

    def _stretched(self, numbers: tuple[int, ...]) -> float:
        """Return what the objective adds for walltimes beside those of the jobs' own requests."""
        cost = 0.0
        for job, number in zip(self.choosing, numbers, strict=True):
            queue = self.document.get("queues", {}).get(job.get("queue"), {"expected_wait": 1800})
            expected = 1 if self.document["objective"] == "wait" else queue["expected_wait"]
            other = job["alternatives"][number - 1] if number else {"walltime": job["walltime"]}
            seconds = other["walltime"] + other.get("cost", 0) - job["walltime"]
            cost += seconds / expected * (len(self._elements(job)))
        return cost

    @staticmethod
    def _elements(job: Document) -> list[str]:
        return [f"{job['id']}[{index}]" for index in (0, 1)] if "array" in job else [job["id"]]

    def _with_choices(self, plan: Document, numbers: tuple[int, ...]) -> Document:
        chosen = {
            name: number
            for job, number in zip(self.choosing, numbers, strict=True)
            for name in self._elements(job)
            if number
        }
        jobs = [one | ({"alternative": chosen[one["id"]]} if one["id"] in chosen else {}) for one in plan["jobs"]]
        return {**plan, "jobs": jobs}

    def _combinations(self, plan: Document) -> Iterator[tuple[int, ...]]:
        """Yield the combination that a plan has; none where elements of an array have different ones."""
        chosen = {one["id"]: one.get("alternative", 0) for one in plan["jobs"]}
        of_jobs = [{chosen[name] for name in self._elements(job) if name in chosen} or {0} for job in self.choosing]
        if all(len(one) == 1 for one in of_jobs):
            yield tuple(min(one) for one in of_jobs)

    def _plan(self, name: str, team: Team, best: tuple[int, float], most: int) -> None:
        """Plan the window with an engine, and compare with the best of all plans of all combinations."""
        say = self.case.failures
        plan = solve(
            self.instance, engine="portfolio", budget=ENOUGH * bool(team.lanes), seed=self.seed, workers=1, team=team
        )
        self.case.engines[name] += 1
        document = plan_to_document(plan)
        say += [f"{name}: the verifier refuses its plan: {one}" for one in Judge(self.document).violations(document)]
        say += [
            f"{name}: event of {event.by}: {event.what}"
            for event in plan.events
            if any(word in event.what for word in DEFECTS)
        ]
        for numbers in self._combinations(document):
            window = self.windows[numbers]
            slices, jobs = read_plan(window, document)
            say += [f"{name}: the oracle refuses its plan: {fault}" for fault in window.faults(slices, jobs)]
            value, bound = plan.objective.value, plan.objective.bound
            if -len(jobs) < best[0]:
                say.append(f"{name}: plans {len(jobs)} jobs, the oracle {-best[0]}")
            self.case.fewer[name] += -len(jobs) > best[0]
            if len(jobs) == most:
                self.case.best[name] += value <= best[1] + NEAR
                if value < best[1] - NEAR:
                    say.append(f"{name}: its value {value:.12g} is below the least, {best[1]:.12g}")
                if bound is not None and bound > best[1] + NEAR:
                    say.append(f"{name}: its bound {bound:.12g} is above the least, {best[1]:.12g}")

    def _prove(self, best: tuple[int, float]) -> None:
        """Let CP-SAT prove the engines' window, and compare with the best of all combinations."""
        problem = problem_of(self.instance)
        window = problem.instance
        kind = "has all plans" if problem.has_all_plans else "some plans are lost"
        first = PlannerEngine().plan(window, None).jobs
        board = Board(
            first,
            by="planner",
            budget=Budget(ENOUGH),
            value_of=partial(objective_value, window),
            judge=lambda _: (),
            placeable=placeable_beside(window, {job.id for job in first}),
            least_of=partial(least_value, window),
        )
        CpHere(DETERMINISTIC_TIME).improve(window, board, seed=self.seed)
        if not board.is_optimal:
            self.case.proofs[kind, "not proven"] += 1
            return
        running = sum(job.running is not None for job in window.jobs)
        found = running - len(board.best.jobs), board.best.value
        is_whole = -found[0] == len(window.elements()) - running
        is_equal = found[0] == best[0] and (not is_whole or abs(found[1] - best[1]) <= NEAR * max(1.0, abs(best[1])))
        self.case.proofs[kind, "as brute force" if is_equal else "brute force finds better"] += 1
        if not is_equal and (kind == "has all plans" or found < best) and not self.instance.reservations:
            self.case.failures.append(f"cp: proves {found}, the oracle has {best}")

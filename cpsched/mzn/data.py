"""The machine and the running jobs, as ``models/window_data.mzn`` declares them: numbers count from 1;
the allowed starts and the dependencies, in seconds from now; and the objective, as whole prices of a second of delay.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from cpsched.domain import Chunk, Instance, Job, NodeClass, PlannedJob, repeated
from cpsched.metrics import delay_rates
from cpsched.problem import Lag, Precedences, chunks_on_empty_node, is_optional, taken_licenses, taken_on_nodes

#: The largest number of a model: solvers have integers of 32 bits (Gecode), and sums must fit too.
MOST_INTEGER = 1 << 30


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a job (by its index) for each second that it starts after a given second (s from now)."""

    job: int
    from_: int
    rate: Fraction


@dataclass(frozen=True)
class Prices:
    """The part of the objective that a plan decides: prices of seconds, of jobs and of the last end."""

    #: Of the starts.
    prices: tuple[Price, ...]
    end_rate: Fraction
    #: The latest end of the last job, in seconds from now.
    horizon: int
    #: By job: the rate of each second that it runs longer than its shortest duration.
    runs: Sequence[Fraction] = ()
    #: By stage: the rate of each second that it is held.
    holds: Sequence[Fraction] = ()

    @cached_property
    def scale(self) -> Fraction:
        """The integer price of a rate of 1: the smallest that is exact for all, or else the largest that fits.

        Rates are rounded down, so that a bound on their sum is one on the objective.
        """
        paid = [rate for rate in self._rates if rate]
        if not paid:
            return Fraction(1)
        exact = Fraction(math.lcm(*(rate.denominator for rate in paid)), math.gcd(*(rate.numerator for rate in paid)))
        return min(exact, MOST_INTEGER / (max(1, self.horizon) * sum(paid, Fraction(0))))

    @property
    def _rates(self) -> Sequence[Fraction]:
        return [self.end_rate, *self.runs, *self.holds, *(price.rate for price in self.prices)]

    def integers(self, rates: Sequence[Fraction]) -> list[int]:
        """Return rates as integer prices."""
        return [math.floor(rate * self.scale) for rate in rates]

    @property
    def is_exact(self) -> bool:
        """Whether rounding has changed nothing."""
        return sum(self._rates) * self.scale == sum(self.integers(self._rates))

    def cost(self, starts: Sequence[int], last_end: int) -> Fraction:
        """Return the cost of a plan (times in seconds from now) that runs and holds nothing longer."""
        late = (price.rate * max(0, starts[price.job] - price.from_) for price in self.prices)
        return sum(late, self.end_rate * last_end)

    def integer_cost(
        self, starts: Sequence[int], last_end: int, runs: Sequence[int] = (), holds: Sequence[int] = ()
    ) -> int:
        """Return the same in integer prices, as the models compute it, with the seconds of longer runs and holds."""
        rates = [*(price.rate for price in self.prices), *self.runs, *self.holds, self.end_rate]
        delays = (max(0, starts[price.job] - price.from_) for price in self.prices)
        seconds = (*delays, *runs, *holds, last_end)
        return sum(price * paid for price, paid in zip(self.integers(rates), seconds, strict=True))

    @property
    def data(self) -> dict[str, Any]:
        """The prices of the starts and of the last end as data of a model."""
        return {
            "num_prices": len(self.prices),
            "price_job": [price.job + 1 for price in self.prices],
            "price_from": [price.from_ for price in self.prices],
            "price": self.integers([price.rate for price in self.prices]),
            "end_price": self.integers([self.end_rate])[0],
        }


def start_prices(
    instance: Instance, jobs: Sequence[Job], earliest: Sequence[int], runtimes: Sequence[int | None]
) -> tuple[Price, ...]:
    """Return the rates of jobs for the seconds after their earliest starts; without slowdown if no runtime is known.

    `earliest`: the first start of each job, in seconds from now: no plan can change its cost until then.
    """
    rates: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for place, (job, first, runtime) in enumerate(zip(jobs, earliest, runtimes, strict=True)):
        for kink, rate in delay_rates(instance, job, runtime):
            rates[place, max(first, kink - instance.now)] += rate
    return tuple(Price(place, from_, rate) for (place, from_), rate in rates.items() if rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The starts that are allowed, job by job."""

    earliest: tuple[int, ...]
    latest: tuple[int, ...]
    lags: tuple[Lag, ...]
    #: No job of a best plan ends later.
    horizon: int

    @classmethod
    def of(cls, instance: Instance, jobs: Sequence[Job], longer: int = 0) -> "Times":
        """Return the times of some waiting jobs of an instance; those that they depend on run, or are among them.

        A job that waits for an array waits for each of its elements.

        In a best plan each job starts as early as it may by itself, or when another ends, or a lag after another's
        start, and so on, back to a first one, or to the end of a running job or of something set aside: no two of these
        steps are the same, which gives the horizon. `longer`: the most seconds by which all jobs together, running ones
        too, may take longer than the instance states.
        """
        now = instance.now
        precedences = Precedences(instance, jobs)
        lags = tuple(lag for milestone in precedences.milestones() for lag in milestone.lags())
        earliest = [precedences.earliest(job) or 0 for job in jobs]
        ends = [job.running.segments[-1].end - now for job in instance.jobs if job.running is not None]
        longest = longer + sum(job.walltime for job in jobs) + sum(lag.seconds for lag in lags)
        horizon = instance.last_end(max([0, *ends, *earliest]), longest)
        last = [instance.latest_start(job) for job in jobs]
        latest = tuple(
            horizon - job.walltime if bound is None else min(bound - now, horizon - job.walltime)
            for job, bound in zip(jobs, last, strict=True)
        )
        return cls(earliest=tuple(earliest), latest=latest, lags=lags, horizon=horizon)

    @property
    def data(self) -> dict[str, Any]:
        """The times as data of a model."""
        return {
            "earliest": list(self.earliest),
            "latest": list(self.latest),
            "num_dependencies": len(self.lags),
            "first_job": [lag.before + 1 for lag in self.lags],
            "then_job": [lag.after + 1 for lag in self.lags],
            "lag": [lag.seconds for lag in self.lags],
            "horizon": self.horizon,
        }


def window_data(instance: Instance, jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the data of a window that both models have: the machine, what is taken of it, and the licences."""
    return {
        **_machine_data(instance),
        **_running_data(instance),
        **_kept_data(instance),
        **_license_data(instance, jobs),
    }


def _machine_data(instance: Instance) -> dict[str, Any]:
    """Return the nodes and their resources."""
    cluster, resources = instance.cluster, resource_numbers(instance)
    return {
        "num_nodes": len(cluster.node_names),
        "num_resources": len(resources),
        "node_name": list(cluster.node_names),
        "resource_name": list(resources),
        "has": [[_has(cluster.class_of[node], name) for name in resources] for node in cluster.node_names],
    }


def _node_numbers(instance: Instance) -> dict[str, int]:
    return {name: number for number, name in enumerate(instance.cluster.node_names, 1)}


def _has(node_class: NodeClass, name: str) -> int:
    """Return the amount that a node has of a resource; of an optional one that it does not have, enough for all."""
    if is_optional(name) and name not in node_class.resources:
        return max(node_class.resources.values(), default=0)
    return node_class.resources.get(name, 0)


def _running_data(instance: Instance) -> dict[str, Any]:
    """Return what running jobs hold or is set aside, and when nodes become idle, and free of exclusive jobs."""
    resources, nodes = resource_numbers(instance), _node_numbers(instance)
    held = list(taken_on_nodes(replace(instance, set_aside=()), _facts(instance)))
    asides = list(taken_on_nodes(instance, ()))
    pieces = [
        (nodes[taken.node], resources[name], amount, taken.start, min(taken.end, MOST_INTEGER))
        for taken in (*held, *asides)
        for name, amount in taken.resources.items()
    ]
    idle_from = dict.fromkeys(nodes, 0)
    shared_from = dict.fromkeys(nodes, 0)
    for taken in held:
        idle_from[taken.node] = max(idle_from[taken.node], taken.end)
        if taken.is_exclusive:
            shared_from[taken.node] = max(shared_from[taken.node], taken.end)
    closed = [(nodes[taken.node], taken.start, min(taken.end, MOST_INTEGER)) for taken in asides]
    return {
        "num_pieces": len(pieces),
        **columns(("piece_node", "piece_resource", "piece_amount", "piece_from", "piece_until"), pieces),
        "idle_from": list(idle_from.values()),
        "shared_from": list(shared_from.values()),
        "num_asides": len(asides),
        **columns(("aside_node", "aside_from", "aside_until"), closed),
    }


def _kept_data(instance: Instance) -> dict[str, Any]:
    """Return the amounts that nodes keep free (OCCS-40), and what is taken of the rest by running jobs or set aside.

    Running jobs are facts: where they hold more than a rule leaves, nothing is left, never a negative amount.
    """
    resources, nodes = resource_numbers(instance), _node_numbers(instance)
    held = list(taken_on_nodes(instance, _facts(instance)))
    rules: list[tuple[int, ...]] = []
    pieces: list[tuple[int, ...]] = []
    for name in nodes:
        node_class = instance.cluster.class_of[name]
        for rule in node_class.keep_free:
            limit = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
            rules.append((nodes[name], resources[rule.resource], resources[rule.beneficiary], limit))
            uses = [taken for taken in held if taken.node == name and rule.beneficiary not in taken.resources]
            times = sorted({time for taken in uses for time in (taken.start, taken.end)})
            for start, end in pairwise(times):
                amount = sum(one.resources.get(rule.resource, 0) for one in uses if one.start <= start < one.end)
                pieces.append((len(rules), min(amount, limit), start, min(end, MOST_INTEGER)))
    return {
        "num_kept": len(rules),
        **columns(("kept_node", "kept_resource", "kept_for", "kept_limit"), rules),
        "num_kept_pieces": len(pieces),
        **columns(("kept_piece_of", "kept_piece_amount", "kept_piece_from", "kept_piece_until"), pieces),
    }


def _license_data(instance: Instance, jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the licences, the jobs that ask for them, and the amounts that running jobs hold."""
    numbers = {name: number for number, name in enumerate(instance.cluster.licenses, 1)}
    loans = [
        (place, numbers[name], amount) for place, job in enumerate(jobs, 1) for name, amount in job.licenses.items()
    ]
    pieces = [
        (numbers[taken.name], taken.amount, taken.start, min(taken.end, MOST_INTEGER))
        for taken in taken_licenses(instance, _facts(instance))
    ]
    return {
        "num_licenses": len(numbers),
        "license_name": list(numbers),
        "license_total": list(instance.cluster.licenses.values()),
        "num_loans": len(loans),
        **columns(("loan_job", "loan_license", "loan_amount"), loans),
        "num_license_pieces": len(pieces),
        **columns(("license_piece_of", "license_piece_amount", "license_piece_from", "license_piece_until"), pieces),
    }


def resource_numbers(instance: Instance) -> dict[str, int]:
    """Return the number of each resource that nodes have, or that rules or requests name."""
    classes = instance.cluster.classes
    names = [name for node_class in classes for name in node_class.resources]
    names += [name for c in classes for rule in c.keep_free for name in (rule.resource, rule.beneficiary)]
    names += [name for job in instance.jobs for step in job.steps for name in step.request.totals]
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


def most_on_nodes(instance: Instance, job: Job, chunk: Chunk) -> list[int]:
    """Return the number of chunks that each node holds when nothing else is on it (P of BRIDI-6)."""
    row: list[int] = []
    for node_class in instance.cluster.classes:
        exclusive = job.steps[0].request.place.exclusive
        fit = chunks_on_empty_node(node_class, chunk, job.walltime, exclusive=exclusive)
        row += [min(fit, chunk.count) if node_class.is_up else 0] * len(node_class.names)
    return row


def _facts(instance: Instance) -> list[PlannedJob]:
    """Return the running jobs whose allocations are no decisions of the model."""
    return [repeated(job) for job in instance.jobs if job.running is not None]


def columns(names: Sequence[str], rows: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """Return rows as named columns."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}

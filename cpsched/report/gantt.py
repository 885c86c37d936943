"""A plan as one HTML file that opens offline: the data here, the drawing in ``gantt_*.js``.

The page loads nothing: its content security policy admits only the one script and the one style that it carries, by
their hashes, so that not even a flaw in the escaping could run a name as code.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise

from cpsched.arguments import at_the_door
from cpsched.charts import duration
from cpsched.domain import Cluster, Instance, Job, Placement, Plan, PlannedJob, Segment
from cpsched.metrics import Summary, available, jobs_by_id, summarise, usage_over_time
from cpsched.report.page_parts import as_html, asset, embedded, filled, source_of
from cpsched.report.run_groups import NO_QUEUE
from cpsched.report.words import (
    basis_of,
    change_description,
    figures,
    request_text,
    share_text,
    size_text,
    utc_offset,
    value_text,
)

#: The parts of the page's one script, in order.
_SCRIPTS = ("gantt_model.js", "gantt_view.js", "gantt_drawing.js", "gantt_history.js", "gantt_page.js")


@at_the_door
def gantt_html(instance: Instance, plan: Plan, *, is_embedded: bool = False) -> str:
    """Return a self-contained HTML page that shows a plan: nodes over time, use of resources, details of each job.

    A fragment ``#job=ID`` in the page's address selects a job.

    Parameters
    ----------
    instance, plan
        The plan, and the instance that it is of.
    is_embedded
        Whether the page is a frame of a report, which shows the figures and tables itself.

    Raises
    ------
    ValueError
        If a job or a node of the plan is not in the instance.
    """
    style, script = gantt_assets()
    admitted = f"style-src {source_of(style)}; script-src {source_of(script)}"
    parts = {
        "CLASS": "embedded" if is_embedded else "alone",
        "POLICY": f"default-src 'none'; {admitted}; base-uri 'none'; form-action 'none'",
        "TITLE": as_html(f"{instance.name}: plan"),
        "STYLE": style,
        "DATA": embedded(_PageData(instance, plan).document()),
        "SCRIPT": script,
    }
    return filled("gantt.html", parts)


def gantt_assets() -> tuple[str, str]:
    """Return the style and the script of the page."""
    return asset("gantt.css"), "\n".join(map(asset, _SCRIPTS))


def _numbers() -> defaultdict[object, int]:
    """Return a dict that gives each distinct value a number, in the order in which they are asked for."""
    found: defaultdict[object, int] = defaultdict()
    found.default_factory = found.__len__
    return found


class _PageData:
    """Collects the data of the page's script; repeated texts and amounts are numbered. Mutable."""

    def __init__(self, instance: Instance, plan: Plan) -> None:
        self.instance = instance
        self.plan = plan
        self.nodes = _by_place(instance.cluster)
        self.node_index = {name: index for index, name in enumerate(self.nodes)}
        self.resources = tuple(instance.cluster.totals)
        self.entries = jobs_by_id(instance)
        self.texts = _numbers()
        self.held = _numbers()
        self.queues = _numbers()
        #: The runs of each job that were cut short.
        self.cut: defaultdict[str, list[PlannedJob]] = defaultdict(list)

    def document(self) -> dict[str, object]:
        """Return all data; ``gantt_model.js`` is their reader."""
        instance, plan, summary = self.instance, self.plan, summarise(self.instance, self.plan)
        for name in instance.queues:
            self.queues[name]  # the queues of the instance come first
        for attempt in plan.attempts:
            self.cut[attempt.id].append(attempt)
        jobs = [self._job(planned) for planned in plan.jobs]
        epoch = instance.epoch
        offset = utc_offset(instance)  # the page has one for all times
        return {
            "name": instance.name,
            "epoch": [round(epoch.timestamp() * 1000), offset] if epoch else None,
            "now": instance.now,
            "end": instance.now + summary.horizon,
            "facts": figures(plan, summary),
            "sentence": plan_sentence(instance, summary),
            "waits": [
                [row.queue or NO_QUEUE, f"{row.count:,}", *(duration(s) for s in (row.mean, row.median, row.max))]
                for row in summary.waits
            ],
            "found": [[one.at, one.value, value_text(one.value), one.by] for one in plan.incumbents],
            "bound": None if plan.objective.bound is None else [plan.objective.bound, value_text(plan.objective.bound)],
            "elapsed": plan.engine.elapsed,
            "events": [[f"{event.at:.2f} s", event.by, event.what] for event in plan.events],
            "waiting": [[job.id, str(job.reason), job.detail] for job in plan.waiting_room],
            "resources": self._resources(summary),
            "classes": self._classes(),
            "levels": self._levels(),
            "nodes": self.nodes,
            "jobs": jobs,
            "reserved": [
                [piece.id, piece.start, piece.end, self._runs(piece.allocation)]
                for piece in plan.reservations
                if piece.allocation
            ],
            "queues": list(self.queues),
            "texts": list(self.texts),
            "held": list(self.held),
        }

    def _job(self, planned: PlannedJob) -> list[object]:
        """Return one job as a row, texts and queue by number."""
        job: Job = self.entries[planned.id]
        licenses = ", ".join(f"{name} {amount}" for name, amount in job.licenses.items())
        number, chosen = self.texts.__getitem__, job.choices[min(planned.alternative, len(job.alternatives))]
        return [
            planned.id,
            *(number(text) for text in (job.user, job.group, job.project)),
            self.queues[job.queue or NO_QUEUE],
            job.submit,
            chosen.walltime,
            number(request_text(chosen)),
            int(job.running is not None),
            number(licenses),
            number(change_description(self.instance, job, planned, self.cut[planned.id])),
            [
                *(
                    [one.start, one.end, self._runs(one.allocation), number("cut short")]
                    for run in self.cut[planned.id]
                    for one in run.segments
                ),
                *(
                    self._segment(job, place, segment, planned)
                    for place, segment in enumerate(planned.segments, start=1)
                ),
            ],
        ]

    def _segment(self, job: Job, place: int, segment: Segment, planned: PlannedJob) -> list[object]:
        """Return a segment; with a text if it is a step, on a share or of an alternative; and whether on a share."""
        row: list[object] = [segment.start, segment.end, self._runs(segment.allocation)]
        share = share_text(job, segment)
        words = f"step {place} of {len(planned.segments)}" if job.is_evolving and job.running is None else share
        if planned.alternative:
            words = f"alternative {planned.alternative} of {len(job.alternatives)}"
        if len(planned.segments) > 1 and job.resizable is not None:
            words = size_text(segment)
        return [*row, self.texts[words], int(bool(share))] if words else row

    def _runs(self, allocation: Iterable[Placement]) -> list[int]:
        """Fold an allocation into triples: first node, number of neighbours, number of the amounts of each."""
        on_node: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for placement in allocation:
            index = self.node_index.get(placement.node)
            if index is None:
                raise ValueError(f"node {placement.node!r} is not in the instance {self.instance.name!r}")
            amounts = on_node[index]
            for name, amount in placement.resources.items():
                amounts[name] = amounts.get(name, 0) + amount
        runs: list[int] = []
        for index in sorted(on_node):
            held = self.held[tuple(on_node[index].get(name, 0) for name in self.resources)]
            if runs and runs[-3] + runs[-2] == index and runs[-1] == held and not self._begins_class(index):
                runs[-2] += 1
            else:
                runs += [index, 1, held]
        return runs

    def _begins_class(self, index: int) -> bool:
        """Return whether a node is of another class than the one above it: runs do not cross classes."""
        kinds = self.instance.cluster.class_of
        return index == 0 or kinds[self.nodes[index]] is not kinds[self.nodes[index - 1]]

    def _resources(self, summary: Summary) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for name, total in available(self.instance.cluster).items():
            times, amounts = usage_over_time(self.instance, self.plan, name)
            mean = summary.utilisation.get(name)
            rows.append({"name": name, "total": total, "mean": mean, "times": times, "amounts": amounts})
        return rows

    def _classes(self) -> list[dict[str, object]]:
        """Return runs of nodes of a class; ``basis``: the resource by whose share jobs are stacked on a node, or -1."""
        rows: list[dict[str, object]] = []
        starts = [index for index in range(len(self.nodes)) if self._begins_class(index)]
        for first, after in pairwise([*starts, len(self.nodes)]):
            node_class = self.instance.cluster.class_of[self.nodes[first]]
            basis = basis_of(node_class.resources)
            rows.append(
                {
                    "first": first,
                    "count": after - first,
                    "alike": len(node_class.names),
                    "amounts": [node_class.resources.get(name, 0) for name in self.resources],
                    "basis": -1 if basis is None else self.resources.index(basis),
                    "state": str(node_class.state),
                    "properties": ", ".join(f"{key}={value}" for key, value in node_class.properties.items()),
                }
            )
        return rows

    def _levels(self) -> list[list[object]]:
        """Return the levels of the topology, widest groups first: name, and runs of nodes as (group, first, number)."""
        levels: list[list[object]] = []
        for level, group_of in groups_of_nodes(self.instance.cluster).items():
            rows: list[list[object]] = []
            for group, run in groupby(enumerate(self.nodes), key=lambda each: group_of.get(each[1])):
                places = [index for index, _ in run]
                if group is not None:
                    rows.append([group, places[0], len(places)])
            levels.append([level, rows])
        return levels


def groups_of_nodes(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return the group of each node that has one, by level of the topology, the widest groups first."""
    return {
        level: {node: group for group, nodes in groups.items() for node in nodes}
        for level, groups in _widest_first(cluster)
    }


def _widest_first(cluster: Cluster) -> list[tuple[str, Mapping[str, tuple[str, ...]]]]:
    return sorted(cluster.topology.items(), key=lambda item: len(item[1]))


def _by_place(cluster: Cluster) -> tuple[str, ...]:
    """Return the nodes such that those of a group are neighbours, otherwise in document order."""
    levels = [
        {node: number for number, nodes in enumerate(groups.values()) for node in nodes}
        for _, groups in _widest_first(cluster)
    ]
    return tuple(sorted(cluster.node_names, key=lambda name: [places.get(name, len(places)) for places in levels]))


def plan_sentence(instance: Instance, summary: Summary) -> str:
    """Return the plan in one sentence: for readers who cannot see the chart."""
    nodes = len(instance.cluster.node_names)
    waiting = summary.planned + summary.waiting_room
    return (
        f"{summary.planned:,} of {waiting:,} waiting jobs have a start on {nodes:,} nodes; "
        f"running: {summary.running:,}; the last job ends {duration(summary.horizon)} from now."
    )

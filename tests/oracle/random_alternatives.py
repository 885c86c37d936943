"""Random tiny windows in which waiting jobs have alternatives, few enough to try everything."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Objective,
    ObjectiveTerm,
    Place,
    Placement,
    Request,
    Running,
    Segment,
    Step,
)

__all__ = ["window_with_alternatives"]


def window_with_alternatives(seed: int, *, jobs: int = 3, places: bool = False) -> Instance:
    """Return a window of two or three nodes, with jobs most of which have one or two alternatives.

    `places`: whether alternatives of one job may have several places.
    """
    random = Random(seed)
    cores = random.choice([1, 2])
    names = ("n1", "n2", "n3")[: random.choice([2, 3])]

    def step(place: Place) -> Step:
        count = random.randint(1, len(names))
        chunk = Chunk(count=count, resources=Amounts({"cores": random.randint(1, cores)}))
        return Step(walltime=random.randint(1, 3), request=Request(chunks=(chunk,), place=place))

    listed = []
    for number in range(jobs):
        place = Place(
            arrangement=random.choice([Arrangement.FREE, Arrangement.SCATTER]), exclusive=random.random() < 0.2
        )
        other = Place() if places else place
        steps = dict.fromkeys([step(place), *(step(other) for _ in range(random.choice([0, 1, 2])))])
        own, *others = steps
        others = [replace(one, cost=random.choice([0, 0, 1, 3])) for one in others]
        submit = random.randint(-2, 2)
        listed.append(
            Job(
                id=f"j{number}",
                submit=submit,
                steps=(own,),
                alternatives=tuple(others),
                deadline=random.randint(6, 9) if random.random() < 0.15 else None,
                weight=random.choice([None, 2.0]),
            )
        )
    if random.random() < 0.5:
        held = Placement(node="n1", chunk=0, count=1, resources=Amounts({"cores": 1}))
        segment = Segment(start=-1, end=random.randint(1, 3), allocation=(held,))
        first = replace(listed[0], id="r", submit=-1, deadline=None, alternatives=())
        request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1})),))
        steps_of_running = (Step(walltime=segment.end + 1, request=request),)
        listed.append(replace(first, steps=steps_of_running, running=Running(start=-1, segments=(segment,))))
    terms = random.sample(sorted(set(ObjectiveTerm) - {ObjectiveTerm.WASTE}), random.choice([1, 2]))
    return Instance(
        name=f"alternatives-{seed}",
        cluster=Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": cores})),)),
        jobs=tuple(listed),
        objective=Objective(weights=FrozenMap({term: random.choice([0.5, 1.0]) for term in terms})),
    )

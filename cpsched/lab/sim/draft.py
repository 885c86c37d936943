"""A decision in the making: the starts so far, and what is free after them."""

from __future__ import annotations

from cpsched.lab.sim import kernels
from cpsched.lab.sim.scheduler import Decision, Start
from cpsched.lab.sim.world import SimWorld
from cpsched.rusv import instant_kernels


class Draft:
    """A decision in the making, for schedulers that start jobs one by one; mutable. It is of one second.

    `world`: the state of the simulation, which is not changed.
    """

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        machine = world.machine
        self._machine = machine._replace(free=machine.free.copy(), sfree=machine.sfree.copy())
        self._starts: dict[int, Start] = {}

    def start(self, job: int) -> bool:
        """Start a job of the queue if it fits, cheap nodes first; return whether it does.

        It fits where what it asks for is free now, beside the starts that the draft has already, and is not set aside
        before its walltime is over. A malleable job starts at full share. A job that the draft has already, that does
        not wait, or that starts by itself, is not started again.
        """
        world, m, x = self._world, self._machine, self._world.scratch
        if job in self._starts or job in world.load.evolving or not world.may_begin(job):
            return False
        demand = int(world.load.demand[job])
        count = instant_kernels.map_now(demand, m.free, m.sfree, world.tables, x)
        entries = x.entries[:count].copy()
        if not count or not kernels.fits_there(job, entries, world.state, m, world.tables, x):
            return False
        filled = instant_kernels.spell_out(demand, entries, count, world.tables, x)
        instant_kernels.change(m.free, m.sfree, filled, -1, x)
        self._starts[int(job)] = Start(int(job), entries)
        return True

    @property
    def free(self) -> dict[str, int]:
        """What is free of each resource on nodes that are up, and of each licence, after the starts of the draft."""
        return self._world.load.columns.totals_of(self._machine.sfree)

    def decision(self, *, wake: int | None = None) -> Decision:
        """Return the decision to start these jobs.

        `wake`: the latest second at which the scheduler is asked again; None: at the next event.
        """
        return Decision(starts=tuple(self._starts.values()), wake=wake)

"""`SchedulingEnv`: jobs arrive at a machine, and an agent picks the next one of the queue."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.lab.sim import Picks
from cpsched.metrics import SLOWDOWN_TAU
from cpsched.text import how_to_install

try:
    import gymnasium
    from gymnasium.spaces import Box, Discrete
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"cpsched.gym needs {error.name}; {how_to_install('gym')}", name=error.name) from error

Observation = NDArray[np.float32]

#: The columns of an observation.
FEATURES = ("is there", "wait", "walltime", "share of the machine", "fits now", "free share of the machine")
#: Seconds that are one half: times t are t / (t + this).
_HALF = 3600.0


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """A machine and its queue, after RLScheduler (Zhang et al., SC 2020).

    **Action**, ``Discrete(window)``: a place among the first `window` waiting jobs, in the order of submission; a place
    behind the last one is that of the last one. A job that fits starts, and the next pick is of the same second. One
    that does not fit lets time go on to the next arrival or end.

    **Observation**, ``Box(0, 1, (window, 6))`` of float32, a row for each place: 1 where there is a job; its wait and
    its walltime, t seconds as t / (t + 3600); the largest share of the machine that it asks for; 1 if it fits now; the
    share of the machine that is free. Rows without a job are 0.

    **Reward**: less the bounded slowdown of the job that starts, divided by the number of jobs; 0 if none starts. So
    the sum over an episode is less the mean bounded slowdown.

    **Episode**: `jobs` jobs that follow each other, from one that is drawn at `reset` (``options={"first": 0}`` says
    which), on a machine that is empty at first. It ends when the last one has started.

    Parameters
    ----------
    instance
        The workload; what of it is supported says `cpsched.lab.sim.Picks`.
    window
        How many waiting jobs the agent sees.
    jobs
        Of an episode; None: all, in each.

    Raises
    ------
    UnsupportedError
        If jobs cannot be counted.
    ValueError
        If there are fewer jobs, or none are seen.
    """

    def __init__(self, instance: Instance, *, window: int = 128, jobs: int | None = None) -> None:
        #: What is played. An agent that needs more than the observation finds it here: `queue`, `walltime`, `submit`.
        self.picks = Picks(instance)
        self.jobs = len(self.picks) if jobs is None else jobs
        if window < 1 or not 1 <= self.jobs <= len(self.picks):
            raise ValueError(f"Expected window >= 1 and jobs from 1 to {len(self.picks)}, got {window} and {self.jobs}")
        self.window = window
        self.action_space = Discrete(window)
        self.observation_space = Box(0.0, 1.0, (window, len(FEATURES)), dtype=np.float32)
        walltime = self.picks.walltime
        self._of_jobs = np.zeros((len(walltime), len(FEATURES)), dtype=np.float32)
        self._of_jobs[:, 0], self._of_jobs[:, 2] = 1.0, walltime / (walltime + _HALF)
        self._of_jobs[:, 3] = self.picks.share
        self._submit = self.picks.submit.astype(np.float64)
        self._lengths: list[int] = self.picks.length.tolist()
        self._submits: list[int] = self.picks.submit.tolist()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode. `options`: ``first``, the number of its first job; default: it is drawn."""
        super().reset(seed=seed)
        first = (options or {}).get("first")
        if first is None:
            first = int(self.np_random.integers(0, len(self.picks) - self.jobs + 1))
        self.picks.begin(first, self.jobs)
        return self.observation(), {}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Pick a job."""
        picks = self.picks
        job = picks.pick(min(int(action), len(picks.queue) - 1, self.window - 1))
        reward = 0.0
        if job is not None:
            ran = self._lengths[job]
            response = picks.starts[job] + ran - self._submits[job]
            reward = -max(1.0, response / max(SLOWDOWN_TAU, ran)) / self.jobs
        return self.observation(), reward, picks.is_over, False, {}

    def observation(self) -> Observation:
        """Return the observation of now."""
        picks, found = self.picks, np.zeros((self.window, len(FEATURES)), dtype=np.float32)
        queue = picks.queue[: self.window]
        if queue:
            jobs, count = np.array(queue), len(queue)
            wait = picks.now - self._submit[jobs]
            rows = self._of_jobs[jobs]
            rows[:, 1] = wait / (wait + _HALF)
            rows[:, 4] = picks.fitting(jobs)
            rows[:, 5] = picks.free_share
            found[:count] = rows
        return found

    def action_mask(self) -> NDArray[np.int8]:
        """Return which places have a job, as ``action_space.sample`` takes it."""
        return (np.arange(self.window) < len(self.picks.queue)).astype(np.int8)

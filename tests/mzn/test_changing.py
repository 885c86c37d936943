"""Jobs that change: the model has none, and they are refused by name."""

from __future__ import annotations

from cpsched.mzn import MiniZinc
from tests.cp.test_changing_jobs import evolving, running, window
from tests.cp.test_constraints import job

WHOLE = {"names": "n1", "resources": {"cores": 4}}


def test_evolving_jobs_are_refused() -> None:
    """A job has one request as long as it runs."""
    waiting = window([WHOLE], evolving("a", (2, "ncpus=1"), (2, "ncpus=2")))
    assert MiniZinc().unsupported(waiting) == ("job a: evolves over several steps",)


def test_jobs_on_a_share_are_refused() -> None:
    """The model has jobs on all their cores: one that can run, or continue, on fewer is refused."""
    shares = {"shares": [0.5]}
    waiting = window([WHOLE], job("a", "ncpus=2", walltime=1, malleable=shares))
    assert MiniZinc().unsupported(waiting) == ("job a: can run on fewer cores",)
    once = [(-1, 4, {"n1": 2}), (4, 12, {"n1": 4})]
    entry = running("r", "ncpus=4", once, walltime=10, malleable=shares)
    assert MiniZinc().unsupported(window([WHOLE], entry, job("a", "ncpus=2", walltime=1))) == (
        "job r: its running allocation changes over time",
        "job r: can run on fewer cores",
    )

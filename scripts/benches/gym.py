"""Measure decisions a second of `cpsched.gym`, and an agent that learnt: it stands beside SJF and F1.

The setting is that of RLScheduler (Zhang et al., SC 2020): the model of Lublin on 256 processors (`cpsched generate
lublin --nodes 256 --cores 1`), episodes of 256 jobs from any one on, no backfilling, mean bounded slowdown. The agent
scores each waiting job by itself, from what the environment shows of it, in a network of eight hidden units; numpy
alone trains it, by evolution strategies (Salimans et al. 2017). It is judged on jobs of another seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from benchmarking.measure import print_table, say
from numpy.typing import NDArray

from cpsched.lab.gym import SchedulingEnv
from cpsched.lab.workloads import lublin

#: Features of a job that is there, hidden units, and how far candidates are from the policy, and steps go.
INPUTS, HIDDEN, SIGMA, RATE = 5, 8, 0.3, 0.4

Weights = NDArray[np.float64]
#: Picks a place of the queue.
Agent = Callable[[SchedulingEnv, NDArray[np.float32]], int]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--rounds", type=int, default=60, help="steps of the training")
    parser.add_argument("--pairs", type=int, default=8, help="pairs of candidates in each")
    parser.add_argument("--episodes", type=int, default=20, help="episodes on which agents are judged")
    parser.add_argument("--jobs", type=int, default=256, help="jobs of an episode")


def run(options: argparse.Namespace) -> None:
    """Print a table of speed, and one of agents."""
    if options.quick:
        options.rounds, options.pairs, options.episodes, options.jobs = 1, 1, 2, 40
    size = 400 if options.quick else 10_000
    training, judging = (SchedulingEnv(lublin(size, seed, nodes=256, cores=1), jobs=options.jobs) for seed in (1, 2))
    whole = SchedulingEnv(lublin(size, 3, nodes=256, cores=1))
    rows = [[name, f"{rate(whole, agent):,.0f}"] for name, agent in (("first come, first served", first), ("SJF", sjf))]
    print_table(
        "Decisions a second",
        ["agent", "decisions / s"],
        rows,
        "Steps with their observations of 128 places, for each second of the processor.",
    )
    began = time.perf_counter()
    learnt = train(training, rounds=options.rounds, pairs=options.pairs)
    took = time.perf_counter() - began
    agents: dict[str, Agent] = {"first come, first served": first, "SJF": sjf, "SJF of what fits": sjf_that_fits}
    agents |= {"F1": f1, "learnt": learnt}
    rows = []
    for name, agent in agents.items():
        values = [-play(judging, agent, seed) for seed in range(options.episodes)]
        rows.append([name, f"{np.mean(values):,.1f}", f"{np.median(values):,.1f}", f"{max(values):,.1f}"])
    note = f"{options.episodes} episodes of {options.jobs} jobs; the training took {took:,.0f} s."
    print_table("Mean bounded slowdown of an episode", ["agent", "mean", "median", "worst"], rows, note)


def first(env: SchedulingEnv, seen: NDArray[np.float32]) -> int:
    """Pick the job that came first."""
    return 0


def sjf(env: SchedulingEnv, seen: NDArray[np.float32]) -> int:
    """Pick the job with the shortest walltime."""
    count = min(len(env.picks.queue), env.window)
    return int(np.argmin(seen[:count, 2]))


def sjf_that_fits(env: SchedulingEnv, seen: NDArray[np.float32]) -> int:
    """Pick the shortest job of those that fit now; wide ones may starve."""
    count = min(len(env.picks.queue), env.window)
    return int(np.argmin(seen[:count, 2] - seen[:count, 4]))


def f1(env: SchedulingEnv, seen: NDArray[np.float32]) -> int:
    """Pick by F1 of Carastan-Santos and de Camargo (SC'17), whose clock begins with the episode."""
    picks = env.picks
    jobs = np.array(picks.queue[: env.window])
    submit = np.maximum(1, picks.submit[jobs] - picks.submit[min(picks.starts, default=picks.queue[0])])
    return int(np.argmin(np.log10(picks.walltime[jobs]) * picks.cores[jobs] + 870 * np.log10(submit)))


def play(env: SchedulingEnv, agent: Agent, seed: int) -> float:
    """Play an episode; return the sum of its rewards."""
    seen, _ = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        seen, reward, is_over, _, _ = env.step(agent(env, seen))
        total += reward
    return total


def rate(env: SchedulingEnv, agent: Agent) -> float:
    """Return the decisions of an agent in one episode, for each second of the processor."""
    seen, _ = env.reset(seed=0)
    count, is_over, began = 0, False, time.process_time()
    while not is_over:
        seen, _, is_over, _, _ = env.step(agent(env, seen))
        count += 1
    return count / (time.process_time() - began)


def network(weights: Weights) -> Agent:
    """Return the agent that picks the job with the highest score."""
    split = INPUTS * HIDDEN
    inner, bias, outer = weights[:split].reshape(INPUTS, HIDDEN), weights[split : split + HIDDEN], weights[-HIDDEN:]

    def agent(env: SchedulingEnv, seen: NDArray[np.float32]) -> int:
        count = min(len(env.picks.queue), env.window)
        return int(np.argmax(np.tanh(seen[:count, 1:] @ inner + bias) @ outer))

    return agent


def train(env: SchedulingEnv, *, rounds: int, pairs: int) -> Agent:
    """Return a trained agent: each round moves the weights towards those candidates that were better than their
    opposites on the same episode.
    """
    random = np.random.default_rng(0)
    weights = 0.1 * random.standard_normal(INPUTS * HIDDEN + 2 * HIDDEN)
    for number in range(rounds):
        move = np.zeros_like(weights)
        for pair in range(pairs):
            away, seed = SIGMA * random.standard_normal(len(weights)), number * pairs + pair
            better = np.log(-play(env, network(weights - away), seed) / -play(env, network(weights + away), seed))
            move += np.tanh(better) * away
        weights += RATE * move / (pairs * SIGMA)
        say(f"round {number + 1} of {rounds}")
    return network(weights)

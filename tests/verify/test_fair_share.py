"""Fair shares: the factor of a user's weights, by the readers of both sides and by worked numbers."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.metrics import objective_value
from cpsched.portfolio import solve
from cpsched.verify import verify
from cpsched.verify.instance import read_instance


def window(shares: dict[str, Any], *users: tuple[str | None, str | None]) -> dict[str, Any]:
    """Return a window of one node with a job of each of these users and accounts, of an hour each."""
    jobs = [
        {"id": str(number), "submit": 0, "walltime": 3600, "request": "ncpus=4"}
        | ({} if user is None else {"user": user})
        | ({} if account is None else {"project": account})
        for number, (user, account) in enumerate(users)
    ]
    nodes = {"nodes": [{"names": "n1", "resources": {"cores": 4}}]}
    return {"format": "cpsched-instance/1", "name": "w", "cluster": nodes, "jobs": jobs, "fair_share": shares}


#: Three quarters of the machine are physics', one quarter is eve's. Physics has had half of 800 core-seconds, all of it
#: ann's, who has a third of physics, and bob two.
WORKED: dict[str, Any] = {
    "half_life": 604800,
    "influence": 1,
    "accounts": {"physics": {"shares": 3}},
    "users": [
        {"user": "ann", "account": "physics", "usage": 400},
        {"user": "bob", "account": "physics", "shares": 2},
        {"user": "eve", "usage": 400},
    ],
}


def test_worked_factors() -> None:
    """Ann: a share of 1/4, a usage of 1/2 + (1/2 - 1/2) / 3. Bob: 1/2, and 0 + 1/2 x 2/3. Eve: 1/4, and 1/2."""
    document = window(WORKED, ("ann", "physics"), ("bob", "physics"), ("eve", None), ("ann", None), (None, None))
    instance = parse_instance(document)
    weights = [instance.weight(job) for job in instance.jobs]
    assert weights == [Fraction(667, 1000), Fraction(6, 5), Fraction(667, 1000), 1, 1]
    assert instance_to_document(instance)["fair_share"] == WORKED
    half = parse_instance(document | {"fair_share": {**WORKED, "influence": 0.5}})
    assert [half.weight(job) for job in half.jobs] == [Fraction(833, 1000), Fraction(11, 10), Fraction(833, 1000), 1, 1]


def test_who_has_had_less_goes_first() -> None:
    """The planner's order is that of the queue; the search serves bob before ann, and the judge has the same value."""
    instance = parse_instance(window(WORKED, ("ann", "physics"), ("bob", "physics")))
    plan = solve(instance, engine="search", steps=20)
    assert {job.id: job.start for job in plan.jobs} == {"0": 3600, "1": 0}
    assert plan.objective.value == pytest.approx(2 * 0.667)
    assert objective_value(instance, plan.jobs) == plan.objective.value
    assert not verify(instance_to_document(instance), plan_to_document(plan))


def a_tree(random: Random) -> dict[str, Any]:
    """Draw some accounts, each below one before it or at the top, and users in them."""
    names = [f"a{number}" for number in range(random.randrange(5))]
    accounts: dict[str, Any] = {}
    for place, name in enumerate(names):
        parent = random.choice([None, *names[:place]])
        accounts[name] = {"shares": random.randint(1, 5)} | ({} if parent is None else {"parent": parent})
    users = {(random.choice("uvw"), random.choice([None, *names])) for _ in range(random.randint(1, 6))}
    most = random.choice([0, 10, 10**9])
    entries = [
        {"user": user, "shares": random.randint(1, 3), "usage": random.randint(0, most)}
        | ({} if account is None else {"account": account})
        for user, account in sorted(users, key=str)
    ]
    influence = {} if random.random() < 0.5 else {"influence": random.choice([0, 0.3, 1])}
    return {"half_life": random.randint(1, 10**6), "accounts": accounts, "users": entries} | influence


@pytest.mark.parametrize("seed", range(40))
def test_both_readers_have_the_same_factors(seed: int) -> None:
    """Of random trees; nobody has less than a thousandth or more than two, and shares are those of the whole."""
    shares = a_tree(Random(seed))
    document = window(shares, *((one["user"], one.get("account")) for one in shares["users"]))
    instance, judged = parse_instance(document), read_instance(document, "w")
    ours = [instance.weight(job) for job in instance.jobs]
    assert ours == [judged.weight(judged.jobs[job.id]) for job in instance.jobs]
    assert all(Fraction(1, 1000) <= one <= 2 for one in ours)
    assert instance.fair_share is not None
    assert sum(one.share for one in instance.fair_share.standings.values()) <= 1


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"accounts": {"a": {"parent": "b"}, "b": {"parent": "a"}}}, "fair_share.accounts.a.parent"),
        ({"accounts": {"physics": {"parent": "science"}}}, "fair_share.accounts.physics.parent"),
        ({"accounts": {"physics": {"shares": 0}}, "users": WORKED["users"][:2]}, "fair_share"),
        ({"users": [{"user": "ann", "account": "physics", "shares": 0}]}, "fair_share.accounts.physics"),
        ({"users": [{"user": "ann", "account": "chemistry"}]}, "fair_share.users[0].account"),
        ({"users": [{"user": "ann"}, {"user": "ann"}]}, "fair_share.users[1].user"),
        ({"users": []}, "fair_share.users"),
        ({"half_life": 0}, "fair_share.half_life"),
        ({"influence": 1.5}, "fair_share.influence"),
    ],
)
def test_what_is_no_tree_of_shares_is_refused(change: dict[str, Any], path: str) -> None:
    """By both readers; ours says where."""
    document = window({**WORKED, **change}, ("ann", "physics"))
    with pytest.raises(DocumentError) as refusal:
        parse_instance(document)
    assert path in {fault.path for fault in refusal.value.faults}
    with pytest.raises(DocumentError):
        read_instance(document, "w")

"""Fair shares, as the judge reads them: what they make of the weights of a user's jobs in an account."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from cpsched.verify.documents import MAX_AMOUNT, MAX_AREA, Cursor


class _Node(NamedTuple):
    """An account or a user: what it is below, its shares, and what it has used itself."""

    parent: str | None
    shares: int
    usage: int


def read_fair_share(cursor: Cursor) -> Mapping[tuple[str | None, str | None], Fraction]:
    """Read shares and usage; return the factor of each user in each account."""
    members = cursor.members(["half_life", "users"], ["accounts", "influence"])
    members["half_life"].duration()
    influence = members["influence"].number() if "influence" in members else Fraction(1, 2)
    if not 0 <= influence <= 1:
        members["influence"].refuse(f"expected an influence from 0 to 1, got {members['influence'].value!r}")
    accounts: dict[str, _Node] = {}
    for name, entry in members["accounts"].entries() if "accounts" in members else ():
        keys = entry.members([], ["shares", "parent"])
        accounts[name] = _Node(_named(keys, "parent"), _amount(keys, "shares", 1, MAX_AMOUNT), 0)
    users: dict[tuple[str | None, str | None], _Node] = {}
    for entry in members["users"].items():
        keys = entry.members(["user"], ["account", "shares", "usage"])
        user, account = keys["user"].name(), _named(keys, "account")
        if account is not None and account not in accounts:
            keys["account"].refuse(f"expected an account, got {account!r}")
        if (user, account) in users:
            keys["user"].refuse(f"expected each user of an account once, got {user!r} again")
        users[user, account] = _Node(
            account, _amount(keys, "shares", 1, MAX_AMOUNT), _amount(keys, "usage", 0, MAX_AREA)
        )
    if not users:
        members["users"].refuse("expected at least one user")
    paths = {name: _path(cursor, accounts, name) for name in accounts}
    among, used = dict[str | None, int](), dict[str | None, int]()
    for node in (*accounts.values(), *users.values()):
        among[node.parent] = among.get(node.parent, 0) + node.shares
    for account_name, shares in among.items():
        if not shares:
            cursor.refuse(f"expected shares below {account_name or 'the top'} that sum to more than 0")
    for node in users.values():
        for account_name in (None, *(paths[node.parent] if node.parent is not None else ())):
            used[account_name] = used.get(account_name, 0) + node.usage
    found: dict[tuple[str | None, str | None], Fraction] = {}
    for key, node in users.items():
        above = () if node.parent is None else paths[node.parent]
        path = [*((accounts[name], used.get(name, 0)) for name in above), (node, node.usage)]
        found[key] = 1 + influence * (_factor(path, among, used[None]) - 1)
        found[key] = Fraction(max(int(1000 * found[key] + Fraction(1, 2)), 1), 1000)
    return found


def _factor(path: list[tuple[_Node, int]], among: Mapping[str | None, int], total: int) -> Fraction:
    """Return the factor of a user, by those that are above it from the top on, and itself, each with what it used."""
    if not total:
        return Fraction(1)
    share, usage = Fraction(1), Fraction(0)
    for node, used in path:
        part = Fraction(node.shares, among[node.parent])
        own = Fraction(used, total)
        usage = own if node.parent is None else own * (1 - part) + usage * part
        share *= part
    return 2 * share / (share + usage) if share else Fraction(0)


def _path(cursor: Cursor, accounts: Mapping[str, _Node], name: str) -> list[str]:
    """Return an account and those above it, from the top on."""
    found: list[str] = []
    at: str | None = name
    while at is not None:
        if at not in accounts:
            cursor.refuse(f"expected an account, got {at!r}")
        if at in found:
            cursor.refuse(f"expected a tree of accounts, got {at!r} above itself")
        found.append(at)
        at = accounts[at].parent
    return found[::-1]


def _named(keys: Mapping[str, Cursor], key: str) -> str | None:
    return keys[key].name() if key in keys else None


def _amount(keys: Mapping[str, Cursor], key: str, default: int, most: int) -> int:
    return keys[key].integer(0, most) if key in keys else default

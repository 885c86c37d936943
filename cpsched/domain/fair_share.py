"""Fair shares: what users may have of a machine, have had, and what that makes of the weights of their jobs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Annotated, NamedTuple

from cpsched.domain.annotations import Amount, Bounds, Duration, Entries, Key, Name, UnitSeconds
from cpsched.domain.frozen import FrozenMap

#: A weight is a whole number of such parts, and at least one of them.
_PARTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account of users and of other accounts, as associations of Slurm."""

    shares: Annotated[Amount, Key("Beside the accounts and users below the same account")] = 1
    parent: Annotated[Name | None, Key("The account above it; left out: it is at the top")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserShare:
    """A user in an account."""

    user: Name
    account: Annotated[Name | None, Key("The project of the jobs; left out: of jobs without, at the top")] = None
    shares: Annotated[Amount, Key("Beside the users and accounts below the same account")] = 1
    usage: Annotated[UnitSeconds, Key("Core-seconds that the user has had, decayed until now")] = 0


class Standing(NamedTuple):
    """The place of a user in the tree, both as shares of the whole."""

    share: Fraction
    #: Of the usage. Below an account its own part, by the shares, of what the others there have used counts too.
    usage: Fraction

    def below(self, part: Fraction, own: Fraction, *, is_top: bool) -> "Standing":
        """Return the standing of who has a part of these shares, and has used `own` of the whole usage."""
        return Standing(self.share * part, own if is_top else own + (self.usage - own) * part)


@dataclass(frozen=True, kw_only=True)  # no slots: what follows from it is computed once
class FairShare:
    """The shares of users and accounts, and what users have used; usage counts less as it gets older."""

    half_life: Annotated[Duration, Key("Seconds after which usage counts half")]
    influence: Annotated[float, Bounds(0, 1), Key("How much of the factor counts: 0 nothing, 1 all of it")] = 0.5
    accounts: Annotated[FrozenMap[Name, Account], Key("By name: a tree")] = FrozenMap()
    users: Annotated[tuple[UserShare, ...], Entries(1), Key("Jobs of all others keep their weights")]

    @cached_property
    def standings(self) -> Mapping[tuple[str | None, str | None], Standing]:
        """The standing of each user in each account: the effective usage of Slurm's classic fair share."""
        below: dict[str | None, list[str]] = {None: []}
        for name, account in self.accounts.items():
            below.setdefault(account.parent, []).append(name)
        downwards: list[str | None] = [None]
        for above in downwards:
            downwards += below.get(above, ())
        used, among = Counter[str | None](), Counter[str | None]()
        for user in self.users:
            used[user.account] += user.usage
            among[user.account] += user.shares
        for place in reversed(downwards):
            if place is not None:
                used[self.accounts[place].parent] += used[place]
                among[self.accounts[place].parent] += self.accounts[place].shares
        total = max(1, used[None])
        of_account: dict[str | None, Standing] = {None: Standing(Fraction(1), Fraction(1))}
        for place in downwards:
            if place is not None:
                account = self.accounts[place]
                part = Fraction(account.shares, among[account.parent])
                of_account[place] = of_account[account.parent].below(
                    part, Fraction(used[place], total), is_top=account.parent is None
                )
        return {
            (user.user, user.account): of_account[user.account].below(
                Fraction(user.shares, among[user.account]), Fraction(user.usage, total), is_top=user.account is None
            )
            for user in self.users
        }

    @cached_property
    def _weights(self) -> Mapping[tuple[str | None, str | None], Fraction]:
        influence = Fraction(str(self.influence)) if any(user.usage for user in self.users) else Fraction(0)
        return {key: _weight(standing, influence) for key, standing in self.standings.items()}

    def weight(self, user: str | None, account: str | None) -> Fraction:
        """Return the factor of the weights of a user's jobs: 1 where the user has had its share, more below, up to 2,
        and less above; 1 for those who are not listed, and for all while nothing is used.
        """
        return self._weights.get((user, account), Fraction(1))


def _weight(standing: Standing, influence: Fraction) -> Fraction:
    """Return 1 + influence x (2 share / (share + usage) - 1), rounded half up to a thousandth, and at least that."""
    share, usage = standing
    value = 2 * share / (share + usage) if share else Fraction(0)
    return Fraction(max(1, floor(_PARTS * (1 + influence * (value - 1)) + Fraction(1, 2))), _PARTS)

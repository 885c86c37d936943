"""The allocation bank: users who have spent their credit cannot run jobs (MAUI-9; QBank, Bode et al., ALS 2000)."""

from cpsched.lab.policies.maui.params import Credits

_HOUR = 3600


class AllocationBank:
    """The accounts of the users, in whole core seconds; mutable.

    A job's start holds what it costs if it runs for all of its walltime; its end debits what it has cost, and what is
    held beyond that is free again. A job for which less is left than it would hold cannot start. `credits`: what there
    is at the beginning.
    """

    def __init__(self, credits: Credits) -> None:
        self._credits = credits
        self._balance: dict[str, int] = {}
        #: For each job that holds something: its user, cores, billing rate, and how much.
        self._holds: dict[int, tuple[str, int, float, int]] = {}

    def balance(self, user: str) -> float | None:
        """Return a user's core hours that no job holds; None for a user who is not charged."""
        left = self._left(user)
        return None if left is None else left / _HOUR

    def _left(self, user: str) -> int | None:
        if user not in self._balance:
            granted = self._credits.users.get(user, self._credits.others)
            if granted is None:
                return None
            self._balance[user] = round(granted * _HOUR)
        return self._balance[user]

    def holds(self, job: int) -> bool:
        """Return whether something is held for a job."""
        return job in self._holds

    def can_pay(self, user: str | None, cores: int, seconds: int, rate: float) -> bool:
        """Return whether a user has enough for these seconds on these cores; a job that costs nothing always runs."""
        left = None if user is None else self._left(user)
        return left is None or _price(cores, seconds, rate) <= max(left, 0)

    def hold(self, job: int, user: str | None, cores: int, seconds: int, rate: float) -> None:
        """Hold what a job will cost at most; the user's balance may go below 0."""
        if user is None or self._left(user) is None:
            return
        amount = _price(cores, seconds, rate)
        self._balance[user] -= amount
        self._holds[job] = user, cores, rate, amount

    def settle(self, job: int, seconds: int) -> None:
        """Debit the cost of a job that has run for these seconds, and release the rest of what it held."""
        held = self._holds.pop(job, None)
        if held is not None:
            user, cores, rate, amount = held
            self._balance[user] += amount - _price(cores, seconds, rate)


def _price(cores: int, seconds: int, rate: float) -> int:
    """Return core seconds, as they are billed."""
    return round(cores * seconds * rate)

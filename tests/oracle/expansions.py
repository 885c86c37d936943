"""What a schedule of an evolving application may make of what was asked for (EVO-2, C1 of EVO-5), by profiles."""

from __future__ import annotations

from cpsched.rusv import Profile


def expands(held: Profile, asked: Profile) -> bool:
    """Return whether the amounts are those of `asked`, one after the other, and none is held for less (EVO-2).

    The paper prints that each step is longer; as long has to be allowed step by step.
    """
    if [amount for _, amount in held.steps] != [amount for _, amount in asked.steps]:
        return False
    return all(longer >= least for (longer, _), (least, _) in zip(held.steps, asked.steps, strict=True))


def delays(held: Profile, asked: Profile) -> bool:
    """Return whether one profile is another one with a delay of 0 or more seconds (EVO-2)."""
    return held.end >= asked.end and held == asked.delay(held.end - asked.end)


def follows(held: Profile, asked: Profile) -> bool:
    """Return whether what is scheduled equals what was asked for, delays it, expands it, or both (C1 of EVO-5)."""
    undelayed = Profile(held.steps[1:]) if held.steps and held.steps[0][1] == 0 else held
    return expands(held, asked) or expands(undelayed, asked)

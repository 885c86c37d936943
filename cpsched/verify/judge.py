"""The judgement: read both documents, then ask every rule."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from cpsched.errors import Fault
from cpsched.verify.case import Case, Violation
from cpsched.verify.documents import load
from cpsched.verify.instance import read_instance
from cpsched.verify.plan import PlanReader
from cpsched.verify.rules import RULES
from cpsched.verify.rules.waiting_room import check_waiting_room


class Judge:
    """Holds plans of one instance to every rule of ``docs/formats.md``.

    Raises `DocumentError` if the instance is not in order.

    `instance`: the document as JSON gives it. `source`: what errors call it.
    """

    def __init__(self, instance: object, source: str = "instance") -> None:
        self._instance = read_instance(instance, source)

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What the instance says of its running jobs that can hardly be so, each with its path."""
        return self._instance.warnings

    def violations(self, plan: object, source: str = "plan", *, claims: bool = True) -> tuple[Violation, ...]:
        """Return everything that is wrong with a plan document; see `verify`.

        Raises `DocumentError` if the plan is no plan at all.

        `plan`, `source`: the document as JSON gives it, and what errors call it. `claims`: whether what is said of the
        jobs in the waiting room has to be true.
        """
        return self.judge(plan, source, claims=claims)[0]

    def judge(
        self, plan: object, source: str = "plan", *, claims: bool = True
    ) -> tuple[tuple[Violation, ...], tuple[str, ...]]:
        """Return the violations, and the names of the rules to which the plan was held."""
        reader = PlanReader(plan, source, self._instance)
        case, found = Case(self._instance, reader.read()), list(reader.violations)
        rules = [rule for rule in RULES if claims or rule is not check_waiting_room]
        for rule in rules:
            found += rule(case)
        return tuple(found), tuple(rule.__name__.removeprefix("check_") for rule in rules)


def verify(instance: Mapping[str, object], plan: Mapping[str, object]) -> tuple[Violation, ...]:
    """Hold a plan to every rule of ``docs/formats.md``.

    Raises `DocumentError` if the instance is not in order, or the plan is no plan at all.

    `instance`, `plan`: the two documents as JSON gives them. Returns everything that is wrong, theme by theme; empty if
    the plan is valid. Malformed parts of the plan are violations too, and count for no further rule.
    """
    return Judge(instance).violations(plan)


def verify_files(instance_path: str | Path, plan_path: str | Path) -> tuple[Violation, ...]:
    """Hold the plan in one file (``.json`` or ``.json.gz``) to the instance in another; see `verify`.

    Raises
    ------
    DocumentError
        If a file cannot be read, or the instance is none.
    ValueError
        If a path is none.
    """
    for name, path in (("instance_path", instance_path), ("plan_path", plan_path)):
        if not isinstance(path, str | PathLike):
            raise ValueError(f"{name}: Expected a text or a Path, got {path!r}")
    return Judge(load(instance_path), str(instance_path)).violations(load(plan_path), str(plan_path))

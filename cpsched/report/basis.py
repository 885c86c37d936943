"""The resource that decides how full a node is."""

from __future__ import annotations

from cpsched.domain import Amounts


def basis_of(resources: Amounts) -> str | None:
    """Return the resource by whose share jobs are stacked on a node: ``cores`` or, without any, the first it has."""
    present = [name for name, amount in resources.items() if amount]
    return "cores" if "cores" in present else next(iter(present), None)

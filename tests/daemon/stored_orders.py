"""The orders that a store has, with their answers, as operators read them with SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from cpsched.site.daemon import Store
from cpsched.site.daemon.store.tables import ORDERS


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOrder:
    """An order with its answer."""

    at: int
    kind: str
    job: str | None
    content: Mapping[str, Any]
    result: str | None
    refusal: str | None
    detail: str | None


def orders_in(store: Store) -> tuple[StoredOrder, ...]:
    """Return all orders, in the order in which they were written."""
    with store._begun() as connection:
        rows = [dict(row._mapping) for row in connection.execute(select(ORDERS).order_by(ORDERS.c.id))]
    return tuple(StoredOrder(**{**row, "content": json.loads(row["content"])}) for row in rows if row.pop("id"))

"""From a checked `Instance` to its canonical document: requests as text, host lists folded, defaults left out."""

from __future__ import annotations

from typing import Any

from cpsched.domain import Instance
from cpsched.formats.instance_reader import COUNTABLE
from cpsched.formats.job_reader import Requests
from cpsched.formats.kinds import kind_of


def instance_to_document(instance: Instance) -> dict[str, Any]:
    """Return the canonical instance document; reading it gives `instance` again."""
    document: dict[str, Any] = kind_of(Instance).write(instance, Requests({*COUNTABLE, *instance.cluster.totals}))
    return document

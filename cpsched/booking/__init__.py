"""Bookings: the ledger of which job holds which resources when, admission, and the mapping of chunks to nodes.

May import: `domain`, `rusv`, `errors`. Begin with `ledger.py`; `columns.py` translates a cluster and its requests
into the columns of the timeline, `admission.py` has the checks that do not depend on time, `mapping.py` the order in
which nodes are filled, `links.py` the dependencies. `running.py` has the running jobs, `modes.py` the shares on which
a malleable job can begin, `shapes.py` and `changing.py` the jobs of several steps, and `continuation.py` the rest of a
running one. Where all jobs have whole nodes of one kind, only numbers count: `whole_nodes.py` tests an instance for
that, `whole_node_mapping.py` turns the numbers into nodes.
"""

from cpsched.booking.admission import chunks_on_empty_node, packs, refusal
from cpsched.booking.columns import WHOLE_REQUEST, Columns
from cpsched.booking.continuation import Units, continuation, units_on
from cpsched.booking.ledger import Ledger, Place
from cpsched.booking.links import awaited_ends
from cpsched.booking.mapping import CheapFirst, Mapping, node_weight
from cpsched.booking.whole_node_mapping import Hold, map_to_nodes, planned_on_nodes
from cpsched.booking.whole_nodes import Application, Machine, application_of, beyond_whole_nodes

__all__ = [
    "WHOLE_REQUEST",
    "Application",
    "CheapFirst",
    "Columns",
    "Hold",
    "Ledger",
    "Machine",
    "Mapping",
    "Place",
    "Units",
    "application_of",
    "awaited_ends",
    "beyond_whole_nodes",
    "chunks_on_empty_node",
    "continuation",
    "map_to_nodes",
    "node_weight",
    "packs",
    "planned_on_nodes",
    "refusal",
    "units_on",
]

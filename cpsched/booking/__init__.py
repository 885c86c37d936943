"""Who holds what, when: the ledger, who is admitted where, and the mapping of chunks to nodes.

May import: `domain`, `rusv`, `errors`. Begin with `ledger.py`; `columns.py` translates a cluster and its requests
into the columns of the timeline, `admission.py` has the checks that do not depend on time, `mapping.py` the order in
which nodes are filled, `links.py` who waits for whom.
"""

from cpsched.booking.admission import chunks_on_empty_node, packs, refusal
from cpsched.booking.ledger import Ledger
from cpsched.booking.mapping import CheapFirst, Mapping, node_weight

__all__ = ["CheapFirst", "Ledger", "Mapping", "chunks_on_empty_node", "node_weight", "packs", "refusal"]

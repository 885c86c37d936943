"""Bookings: the ledger of which job holds which resources when, and the mapping of chunks to nodes.

May import: `domain`, `problem`, `rusv`. Begin with `ledger.py`; `live_ledger.py` has a ledger whose window changes.
`columns.py` translates a cluster and its requests into the columns of the timeline, `mapping.py` has the order in which
nodes are filled, `links.py` the dependencies, and the shares on which a malleable job can begin. `running.py` has the
running jobs and what is set aside, `changing.py` the jobs of several steps, `continuing.py` the rest of a running one.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.booking.changing import ChangingJobs, Shape
    from cpsched.booking.columns import WHOLE_REQUEST, Columns
    from cpsched.booking.continuing import Units, continuation, units_on
    from cpsched.booking.ledger import Ledger, Mark, Place
    from cpsched.booking.links import CompiledMode, Links, compiled_modes
    from cpsched.booking.live_ledger import LiveLedger
    from cpsched.booking.mapping import CheapFirst, Mapping, node_weight
    from cpsched.booking.running import amounts_aside, booked_remainder

__getattr__ = opener(__name__)

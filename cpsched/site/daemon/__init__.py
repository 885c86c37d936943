"""The service: it asks a resource manager what is true, plans, and gives orders, every few seconds, for months.

`core.py` decides, and is pure; `state.py` has its nouns and `orders.py` its orders. `service.py` is the shell around
it, with `window.py` and `planning.py` for plans, `choosing.py` for the engine that won on the past, `judging.py` for
the verifier before every action, `store/` for what must survive, and `heartbeat.py` for the case that it does
not. `site.py` reads the site's file, and `replay.py` the history that the store has seen.

Begin with `core.py`.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.site.daemon.choosing import where_we_are
    from cpsched.site.daemon.core import step
    from cpsched.site.daemon.heartbeat import Watchdog, hand_back
    from cpsched.site.daemon.logs import Log, make_log
    from cpsched.site.daemon.metrics import Metrics
    from cpsched.site.daemon.planning import Planner
    from cpsched.site.daemon.preflight import check_site
    from cpsched.site.daemon.replay import watched
    from cpsched.site.daemon.service import Daemon, Settings
    from cpsched.site.daemon.site import daemon_of, manager_of, read_site, refuse_root, store_url, watchdog_of
    from cpsched.site.daemon.site_model import SiteModel
    from cpsched.site.daemon.state import JobStopped, Policy, State
    from cpsched.site.daemon.store import MOVES, Cycle, Present, Store, StoredRecord

__getattr__ = opener(__name__)

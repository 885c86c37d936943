"""The live page and the HTTP API ``/v1``: what runs, what waits, why, and what if; plans of instances on demand.

`app.py` puts the parts together. `sources.py` says where the state comes from (the daemon's store, or an instance and a
plan), `view.py` is what is known at one moment, and `access.py` which part of it a reader may see. `guard.py` stands
before everything: tokens, limits, security headers. `reading.py`, `asking.py` and `submitting.py` are the endpoints;
`answering.py` answers questions in a thread of its own, and `child.py` plans in a process of its own. ``static/`` has
the page, which knows nothing but the API.

Begin with `app.py`.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.site.serve.access import Token, Visibility, read_tokens
    from cpsched.site.serve.app import is_loopback, make_app, refuse_open_host, run_server
    from cpsched.site.serve.models import ForecastModel, MoveModel
    from cpsched.site.serve.settings import ServeSettings
    from cpsched.site.serve.sources import DocumentSource, Opened, Source, StoreSource, open_source

__getattr__ = opener(__name__)

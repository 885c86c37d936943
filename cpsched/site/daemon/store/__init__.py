"""The daemon's memory in a database. Begin with `store.py`; the tables are in `tables.py`, and how an older database
comes to have them in `migrations/`.
"""

from cpsched.site.daemon.store.store import Cycle, Kept, Present, Store, StoredRecord, file_of

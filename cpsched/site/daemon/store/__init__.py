"""The daemon's memory in a database: begin with `store.py`; `migrations/` bring older ones up to date."""

from cpsched.site.daemon.store.store import MOVES, SEEN, Cycle, Kept, Present, Store, StoredRecord, file_of, json_text

"""The tables of the store, as the newest migration leaves them."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

METADATA = MetaData()

#: A number that the database counts up; SQLite does so for this type only.
_COUNTED = BigInteger().with_variant(Integer, "sqlite")

#: The living plan: one row for each waiting job that has a start.
PLAN = Table(
    "plan",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("revision", Text, nullable=False),
    #: The segments as a plan document has them; after those of the first the alternative, and what is stopped for it.
    Column("segments", Text, nullable=False),
)

#: What users were told last.
PROMISES = Table(
    "promises",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("start", BigInteger, nullable=False),
    Column("since", BigInteger, nullable=False),
)

#: Orders: written before they are given, marked with the manager's answer after it.
ORDERS = Table(
    "orders",
    METADATA,
    Column("id", _COUNTED, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("job", Text),
    #: The order's other fields as JSON.
    Column("content", Text, nullable=False),
    #: None: given or not, nobody knows.
    Column("result", String(16)),
    Column("refusal", String(16)),
    Column("detail", Text),
)

#: What happened: starts, ends, promises made, moved and broken, as JSON.
HISTORY = Table(
    "history",
    METADATA,
    Column("id", _COUNTED, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("job", Text, nullable=False),
    Column("content", Text, nullable=False),
    Index("history_job", "job"),
)

#: One row for each cycle.
CYCLES = Table(
    "cycles",
    METADATA,
    Column("id", _COUNTED, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False, index=True),
    Column("seconds", Float, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("running", Integer, nullable=False),
    Column("planned", Integer, nullable=False),
    #: The value of the plan; None where no plan was made.
    Column("value", Float),
    Column("is_fallback", Boolean, nullable=False),
    Column("orders", Integer, nullable=False),
    Column("why", Text, nullable=False),
)

#: Instance documents, gzipped JSON.
SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    Column("id", _COUNTED, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False, index=True),
    Column("document", LargeBinary, nullable=False),
)

#: Forecasts of starts as they were told, and what became of them.
FORECASTS = Table(
    "forecasts",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("at", BigInteger, primary_key=True, index=True),
    #: None: never.
    Column("likely", BigInteger),
    Column("earliest", BigInteger),
    Column("latest", BigInteger),
    #: The quantiles of the futures.
    Column("low", BigInteger, nullable=False),
    Column("median", BigInteger, nullable=False),
    Column("high", BigInteger, nullable=False),
    Column("waited", BigInteger, nullable=False),
    #: When the job started; None: it waits.
    Column("start", BigInteger),
)

#: What is true now, for readers beside the daemon: one row.
PRESENT = Table(
    "present",
    METADATA,
    #: Counts the cycles that have written it.
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    #: When it was written, in seconds of Unix time.
    Column("clock", Float(precision=53), nullable=False),
    #: Gzipped JSON, as `cpsched.site.daemon.journal` makes it.
    Column("document", LargeBinary, nullable=False),
)

#: The tables that grow, whose old rows are removed.
TIMED = (ORDERS, HISTORY, CYCLES, SNAPSHOTS, FORECASTS)

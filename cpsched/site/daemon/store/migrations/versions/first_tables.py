"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

#: A number that the database counts up; SQLite does so for this type only.
_COUNTED = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "plan",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("end", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.Text, nullable=False),
        sa.Column("segments", sa.Text, nullable=False),
    )
    op.create_table(
        "promises",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "orders",
        sa.Column("id", _COUNTED, primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("job", sa.Text),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("result", sa.String(16)),
        sa.Column("refusal", sa.String(16)),
        sa.Column("detail", sa.Text),
    )
    op.create_table(
        "history",
        sa.Column("id", _COUNTED, primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_index("history_job", "history", ["job"])
    op.create_table(
        "cycles",
        sa.Column("id", _COUNTED, primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("waiting", sa.Integer, nullable=False),
        sa.Column("running", sa.Integer, nullable=False),
        sa.Column("planned", sa.Integer, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("is_fallback", sa.Boolean, nullable=False),
        sa.Column("orders", sa.Integer, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
    )
    op.create_table(
        "snapshots",
        sa.Column("id", _COUNTED, primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )

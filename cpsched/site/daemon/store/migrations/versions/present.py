"""The present: what is true now, for readers beside the daemon."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table of one row."""
    op.create_table(
        "present",
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("clock", sa.Float(precision=53), nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )

"""Forecasts of starts, and what became of them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "forecasts",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, primary_key=True, index=True),
        sa.Column("likely", sa.BigInteger),
        sa.Column("earliest", sa.BigInteger),
        sa.Column("latest", sa.BigInteger),
        sa.Column("low", sa.BigInteger, nullable=False),
        sa.Column("median", sa.BigInteger, nullable=False),
        sa.Column("high", sa.BigInteger, nullable=False),
        sa.Column("waited", sa.BigInteger, nullable=False),
        sa.Column("start", sa.BigInteger),
    )

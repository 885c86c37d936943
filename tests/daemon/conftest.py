"""What tests of the daemon share: a PostgreSQL server of their own, and stores in it and in SQLite."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpsched.site.daemon import Store

#: Where Debian has the programs of each version.
_DEBIAN = Path("/usr/lib/postgresql")
#: Root may not run PostgreSQL: this account of every Debian does.
_UNPRIVILEGED = "nobody"


def _programs() -> Path | None:
    """Return the folder of ``initdb``, or None."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    folders = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parent.parent.name.partition(".")[0]))
    return folders[-1].parent if folders else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server that listens on a socket in its own folder, and yield the URL of its database.

    Skip, outside of CI, where PostgreSQL is missing.
    """
    programs = _programs()
    if programs is None:
        message = "PostgreSQL is not here (apt-get install postgresql)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    folder = Path(tempfile.mkdtemp(prefix="cpsched-pg-", dir="/tmp"))
    account = pwd.getpwnam(_UNPRIVILEGED) if os.geteuid() == 0 else None
    options: dict[str, object] = {}
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
        options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def run(program: str, *arguments: str) -> None:
        subprocess.run(  # type: ignore[call-overload]  # noqa: S603 - our own command
            [str(programs / program), *arguments],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **options,
        )

    data = folder / "data"
    run("initdb", "-D", str(data), "-U", "cpsched", "-A", "trust", "-E", "UTF8", "--no-sync")
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c max_connections=20"
    run("pg_ctl", "-D", str(data), "-w", "-t", "60", "-l", str(folder / "log"), "-o", settings, "start")
    try:
        yield f"postgresql+psycopg://cpsched@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of an empty database, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/cpsched.db"
        return
    from sqlalchemy import create_engine, text

    server = request.getfixturevalue("postgres")
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    yield server


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Yield an empty store, in each kind of database."""
    opened = Store(url)
    yield opened
    opened.close()

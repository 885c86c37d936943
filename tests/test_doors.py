"""Doors fetch what they offer when it is first asked for."""

from __future__ import annotations

import compileall
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_architecture import all_doors

DOOR = """from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from room.inner import one
    from room.inner import inner_other as other

__getattr__ = opener(__name__)
"""
ASK = """
import sys, room
assert "room.inner" not in sys.modules
assert (room.one, room.other) == (1, 2)
try:
    room.inner_secret
except AttributeError:
    print(room.__file__)
"""


def test_a_door_opens_without_its_source(tmp_path: Path) -> None:
    """An installation of compiled modules alone has the same names."""
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text(DOOR)
    (room / "inner.py").write_text("one, inner_other, inner_secret = 1, 2, 3\n")
    assert compileall.compile_dir(room, quiet=1, legacy=True)
    for source in room.glob("*.py"):
        source.unlink()
    asked = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", ASK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert asked.stderr == ""
    assert asked.stdout.strip() == str(room / "__init__.pyc")


@pytest.mark.slow
def test_every_door_has_what_it_offers() -> None:
    """Each public name of each package can be fetched."""
    doors = {module: names for module, names in all_doors().items() if module != "cpsched"}
    offered = [(module, name) for module, names in doors.items() for name in names]
    assert len(offered) > 500
    assert [(module, name) for module, name in offered if not hasattr(import_module(module), name)] == []

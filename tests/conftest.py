"""What all tests share: where things lie, and how long a property may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cpsched.engine import Board, Proof

#: No deadline per example: the first one of a kernel's test compiles it.
settings.register_profile("cpsched", deadline=None)
settings.load_profile("cpsched")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared_data(repository: Path) -> Path:
    """Return the folder of real workloads beside the checkout; skip where it is absent."""
    folder = repository.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real workloads are not here ({folder})")
    return folder


@pytest.fixture(autouse=True)
def _no_false_bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which somebody proves a bound that a plan contradicts; marker `false_bound`: it wants that."""
    contradict, false = Board.contradict, list[Proof]()

    def told(board: Board, proof: Proof) -> None:
        false.append(proof)
        contradict(board, proof)

    monkeypatch.setattr(Board, "contradict", told)
    yield
    if request.node.get_closest_marker("false_bound") is None:
        assert not false

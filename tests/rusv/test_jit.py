"""How kernels are compiled: once for all constants, and inner ones without the code by which Python calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpsched.rusv import jit, kernel_cache


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[Any], int]]:
    """Make an inner kernel that raises one value, and a kernel that has it raise three; nothing is compiled yet."""
    monkeypatch.setattr(kernel_cache, "folder_of_module", lambda _: tmp_path)

    @jit.inner_kernel
    def raised(values: Any, place: Any) -> Any:
        values[place] += 1
        return values[place]

    @jit.kernel
    def all_raised(values: Any) -> Any:
        total = raised(values, 0) + raised(values, 1)
        for place in range(2, values.shape[0]):
            total += raised(values, place)
        return total

    return raised, all_raised


def test_a_kernel_is_compiled_once_for_all_constants(kernels: tuple[Any, Callable[[Any], int]]) -> None:
    """Two constants and a variable are one compiled function."""
    raised, all_raised = kernels
    values = np.array([1, 2, 3])
    assert all_raised(values) == 9
    assert values.tolist() == [2, 3, 4]
    assert len(raised.signatures) == 1


def test_python_cannot_call_an_inner_kernel(kernels: tuple[Any, Callable[[Any], int]]) -> None:
    """An error says why, before it is compiled and after."""
    raised, all_raised = kernels
    values = np.array([1, 2, 3])
    for _ in range(2):
        with pytest.raises(TypeError, match="raised is an inner kernel, which other kernels call, and Python cannot"):
            raised(values, 0)
        all_raised(values)
    assert values.tolist() == [3, 4, 5]

"""How kernels are compiled: once for all constants, and inner ones without the code by which Python calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


class Pair(NamedTuple):
    """An array, and a factor."""

    values: Any
    factor: Any


class Both(NamedTuple):
    """A bundle in a bundle."""

    pair: Pair
    matrix: Any


def test_a_bundle_is_its_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels read the fields of named tuples, also of those in them, and write to their arrays, as Python does."""
    monkeypatch.setattr(kernel_cache, "folder_of_module", lambda _: tmp_path)

    @jit.inner_kernel
    def scaled(both: Any, place: Any) -> Any:
        return both.pair.values[place] * both.pair.factor + both.matrix[place, 1]

    @jit.kernel
    def scale_all(both: Any) -> Any:
        total = 0.0
        for place in range(both.pair.values.shape[0]):
            total += scaled(both, place)
            both.matrix[place, 0] = total
        return total

    values, matrix = np.arange(6, dtype=np.int32)[::2], np.array([[0.0, 0.5], [0.0, 1.5], [0.0, 2.5]])
    for _ in range(2):
        assert scale_all(Both(Pair(values, 3), matrix)) == 22.5
        assert matrix.tolist() == [[0.5, 0.5], [8.0, 1.5], [22.5, 2.5]]
        values = values.copy()  # another layout is another type
    assert len(scale_all.signatures) == 2  # type: ignore[attr-defined]  # of a compiled function


def test_what_a_kernel_does_with_a_bundle_is_left_out_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where None is given for a bundle, what reads it is not compiled; where a bundle is given, what is for None."""
    monkeypatch.setattr(kernel_cache, "folder_of_module", lambda _: tmp_path)

    @jit.inner_kernel
    def first_of(pair: Any) -> Any:
        return pair.values[0] * pair.factor

    @jit.kernel
    def total_of(pair: Any, other: Any) -> Any:
        if pair is None:
            return first_of(other)
        total = first_of(pair)
        if other is not None and total > 0:
            total += first_of(other)
        return total

    two, six = Pair(np.array([1, 2]), 2), Pair(np.array([2, 3]), 3)
    assert [total_of(two, six), total_of(two, None), total_of(None, six)] == [8, 2, 6]


def test_named_tuples_with_equal_fields_are_two_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field is found by its name in the class of the tuple, not by its place."""
    monkeypatch.setattr(kernel_cache, "folder_of_module", lambda _: tmp_path)

    class Swapped(NamedTuple):
        factor: Any
        values: Any

    @jit.kernel
    def first(pair: Any) -> Any:
        return pair.values[0]

    here, there = np.array([1, 2]), np.array([10, 20])
    assert first(Pair(here, there)) == 1
    assert first(Swapped(here, there)) == 10


_MODULE = """
from cpsched.rusv.jit import inner_kernel, kernel

@inner_kernel
def mixed(values, seed):
    total = seed
    for k in range(values.shape[0]):
        for m in range(k, values.shape[0]):
            total = (total * 31 + values[k] * values[m]) % 1000003
            if total % 7 == k:
                values[m] += 1
    for k in range(values.shape[0]):
        if values[k] > 100:
            values[k] -= total % 13
        total += values[k] // 3
    return total

@inner_kernel
def twice(values, seed):
    return mixed(values, mixed(values, seed))

@kernel
def outer(values, seed):
    return twice(values, seed) + 1
"""
_CALL = """
import json, numpy, mixing
values = numpy.arange(5)
result = int(mixing.outer(values, 2))
kernels = (mixing.mixed, mixing.twice, mixing.outer)
print(json.dumps([result, values.tolist(), [sum(k._cache_misses.values()) for k in kernels]]))
"""


def test_a_large_kernel_is_called_by_its_symbol_whoever_compiled_it(tmp_path: Path) -> None:
    """Each process gets the interpreted result: one that compiles all, one that loads all, and some that find only
    kernels that call, or only those that are called, and compile what is missing. A small kernel is not missed: it is
    in those that call it.
    """
    (tmp_path / "mixing.py").write_text(_MODULE)

    def run() -> list[Any]:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _CALL], env=environment, capture_output=True, check=True
        )
        found: list[Any] = json.loads(done.stdout)
        return found

    result, values, compiled = run()
    assert compiled == [1, 1, 1]
    interpreted = {"__name__": "mixing"}
    exec(_MODULE.replace("@inner_kernel", "").replace("@kernel", ""), interpreted)  # noqa: S102  # written above
    expected = np.arange(5)
    assert result == interpreted["outer"](expected, 2)  # type: ignore[operator]
    assert values == expected.tolist()
    assert run() == [result, values, [0, 0, 0]]
    for missing, misses in (("mixed", [1, 0, 0]), ("outer", [0, 0, 1]), ("twice", [0, 0, 0])):
        for file in (tmp_path / "cpsched").glob(f"*/*{missing}*"):
            file.unlink()
        assert run() == [result, values, misses]

"""``cpsched serve``: what is refused before anything is served, and what ``--check`` says."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Write a file with one token."""
    path = tmp_path / "tokens.toml"
    path.write_text(f'[[tokens]]\nuser = "alice"\nsha256 = "{hashlib.sha256(b"secret").hexdigest()}"\n')
    path.chmod(0o600)
    return path


def test_a_check_says_what_would_be_served(run: Run, window: Window, tokens: Path) -> None:
    """An instance with its plan and tokens is in order."""
    found = run(
        "serve", window.instance_file, "--plan", window.plan_file, "--tokens", tokens, "--check", "--port", "99"
    )
    assert found.exit_code == ExitCode.FINE, found.output
    assert found.stdout == "hand-made: in order; instance, 4 jobs, 1 tokens, http://127.0.0.1:99/\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org"])  # noqa: S104 - it is refused
def test_others_are_not_served_without_tokens(run: Run, window: Window, tokens: Path, host: str) -> None:
    """A host other than loopback needs tokens, and with them is in order."""
    refused = run("serve", window.instance_file, "--plan", window.plan_file, "--host", host, "--check")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "Expected tokens (--tokens) for a host other than loopback" in refused.stderr
    words = ("--plan", window.plan_file, "--host", host, "--tokens", tokens, "--check")
    assert run("serve", window.instance_file, *words).exit_code == ExitCode.FINE


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "::1"])
def test_loopback_needs_no_tokens(run: Run, window: Window, host: str) -> None:
    """All names and addresses of loopback are in order without tokens."""
    found = run("serve", window.instance_file, "--plan", window.plan_file, "--host", host, "--check")
    assert found.exit_code == ExitCode.FINE, found.output


def test_tokens_that_others_can_read_are_refused(run: Run, window: Window, tokens: Path) -> None:
    """The file is refused, and nothing of it is printed."""
    tokens.chmod(0o644)
    refused = run("serve", window.instance_file, "--tokens", tokens, "--check")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "mode 0600" in refused.stderr
    assert hashlib.sha256(b"secret").hexdigest() not in refused.output


def test_a_source_that_is_none_is_refused(run: Run, tmp_path: Path) -> None:
    """A file that is not there, or no document, is bad input."""
    (tmp_path / "text").write_text("hello")
    for source in (tmp_path / "none", tmp_path / "text", tmp_path):
        assert run("serve", source, "--check").exit_code == ExitCode.BAD_INPUT


def test_a_plan_of_another_instance_is_refused(run: Run, window: Window, tmp_path: Path) -> None:
    """A plan whose jobs or nodes the instance does not have is none of it."""
    strange = {**window.plan, "jobs": [{**window.plan["jobs"][0], "id": "strange"}]}
    for plan in (strange, {**window.plan, "instance": "other"}):
        path = window.write("other.json", plan)
        refused = run("serve", window.instance_file, "--plan", path, "--check")
        assert refused.exit_code == ExitCode.BAD_INPUT
        assert "Expected a" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "sqlalchemy"])
def test_what_is_not_installed_is_named(tmp_path: Path, package: str) -> None:
    """Without the extra the command says what to install, and is no bug."""
    code = f"import sys; sys.modules[{package!r}] = None; from cpsched.cli import run; run()"
    found = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code, "serve", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert found.returncode == ExitCode.BAD_INPUT
    assert (
        f"serve needs {package}, which is not installed; in a checkout of cpsched: pip install '.[web]'" in found.stderr
    )
    assert "Traceback" not in found.stderr

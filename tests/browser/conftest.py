"""What the tests in a browser share: one browser, and pages that must be without faults when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.browser.driving import BROWSER, Visits, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Not for the whole session: while Playwright's event loop runs, no other test of this process could start one.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Start one browser for the tests of this folder that follow each other in a worker."""
    if BROWSER is None:
        pytest.skip("no browser in PATH (apt-get install chromium-headless-shell)")
    with chromium() as started:
        yield started


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serve sources until the test ends, and its pages are closed: ``serve(source)`` returns an address."""
    from tests.serve.in_thread import served

    with ExitStack() as servers:
        yield lambda *given, **options: servers.enter_context(served(*given, **options))


# after `serve` on purpose: pages are closed before their servers end
@pytest.fixture
def visits(browser: Browser, serve: Callable[..., str]) -> Iterator[Visits]:
    """Open pages in windows of their own; none of them may have had a fault when the test ends."""
    opened = Visits(browser)
    yield opened
    opened.close()
    assert opened.faults == []

"""Chromium, and pages in it whose faults are noted: what the console, the scripts and the network complain about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Request

__all__ = [
    "BROWSER",
    "NARROW",
    "SCREENS",
    "WIDE",
    "Visits",
    "chromium",
    "is_hard_to_use",
    "is_wider_than_screen",
    "looks_wrong",
    "report_of",
    "swipe",
]

#: The commands of browsers; the first one has no window at all, and takes half of the processor's time.
_COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: The browser's command, or None where there is none.
BROWSER = next(filter(None, map(shutil.which, _COMMANDS)), None)

#: Width and height of a desk's screen and of a phone's, in CSS pixels.
WIDE, NARROW = (1440, 900), (390, 844)

#: Each screen in each colour scheme.
SCREENS = tuple((size, scheme) for size in (WIDE, NARROW) for scheme in ("light", "dark"))


_LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
#: A request that the page itself has given up.
_DROPPED = "net::ERR_ABORTED"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser without a screen, and end it.

    Playwright keeps an event loop running in this thread as long: nothing else may start one meanwhile.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visits:
    """Pages, each in a window of its own, and what was wrong with them. Mutable.

    A page that is waited for longer than `patience` seconds is an error.
    """

    def __init__(self, browser: Browser, *, patience: float = 60.0) -> None:
        self._browser = browser
        self._patience = patience
        self._contexts: list[BrowserContext] = []
        #: Errors and warnings of all pages so far; a test that provokes one takes it out.
        self.faults: list[str] = []

    def open(self, url: str, *, screen: tuple[int, int] = WIDE, scheme: str = "light", scale: int = 1) -> Page:
        """Open an address on a screen of this size, with this colour scheme (``light`` or ``dark``).

        A CSS pixel has `scale` times `scale` pixels of the screen.
        """
        width, height = screen
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            device_scale_factor=scale,
            has_touch=width < 600,
            locale="en-GB",
            timezone_id="Europe/Berlin",
        )
        self._contexts.append(context)
        context.set_default_timeout(self._patience * 1000)
        page = context.new_page()
        self._listen(page)
        page.goto(url)
        return page

    def close(self) -> None:
        """Close all windows."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()

    def _listen(self, page: Page) -> None:
        def add(kind: str, text: object) -> None:
            self.faults.append(f"{kind}: {text}")

        def refuse(dialog: Dialog) -> None:
            add("dialog", dialog.message)
            dialog.dismiss()

        page.on("console", lambda said: add("console", said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: add("script", error))

        def lost(request: Request) -> None:
            if request.failure != _DROPPED:
                add("request", f"{request.url} {request.failure}")

        page.on("requestfailed", lost)
        page.on("response", lambda reply: add("answer", f"{reply.status} {reply.url}") if reply.status >= 400 else None)
        page.on("dialog", refuse)


def is_wider_than_screen(page: Page) -> bool:
    """Tell whether a page can be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def looks_wrong(page: Page) -> list[str]:
    """Return what does not look right: texts of less contrast than 4.5 or cut off, and labels on each other.

    What is drawn on a canvas is not seen.
    """
    found: list[str] = page.evaluate(_LOOKS)
    return found


def is_hard_to_use(page: Page) -> list[str]:
    """Return the serious and critical faults that axe-core finds for those who use keys or a screen reader."""
    import axe_playwright_python

    page.evaluate(Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(
        """async () => (await axe.run({iframes: false, preload: false, resultTypes: ["violations"]})).violations
          .filter(({impact}) => impact === "serious" || impact === "critical")
          .map(({id, help, nodes}) => [id, help, ...nodes.slice(0, 3).map(({html}) => html)].join(": "))"""
    )
    return found


def report_of(page: Page) -> dict[str, str]:
    """Return what a page says of itself: the attributes ``data-...`` of its root."""
    said: dict[str, str] = page.evaluate("({...document.documentElement.dataset})")
    return said


def swipe(page: Page, x: float, y: float, distance: float) -> None:
    """Move a finger down by `distance` pixels (up if negative) in ten steps, and wait until the page rests."""
    fingers = page.context.new_cdp_session(page)
    for kind, steps in (("touchStart", (0,)), ("touchMove", range(1, 11))):
        for step in steps:
            point = {"x": x, "y": y + distance * step / 10}
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(200)

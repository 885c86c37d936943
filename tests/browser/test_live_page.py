"""The live page in a browser, with a real server on a daemon's store and on documents."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cpsched.formats import read_instance
from cpsched.site.serve import DocumentSource, StoreSource, Token, Visibility
from tests.bridge.small_world import job, site
from tests.browser.driving import NARROW, SCREENS, WIDE, Visits, is_hard_to_use, is_wider_than_screen, looks_wrong
from tests.browser.wide_plan import wide_plan
from tests.daemon.making import chooses
from tests.report.report_plans import HOSTILE, a_plan
from tests.serve.in_thread import QUICK, live, served
from tests.serve.serving import ALICE, BOB, OPERATOR, TOKENS, users_site

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from cpsched.site.serve.view import View

#: Serves a source, and returns the address.
Serve = Callable[..., str]


@pytest.fixture(scope="module")
def address(repository: Path) -> Iterator[str]:
    """Serve an instance whose plan the planner makes."""
    source = DocumentSource(read_instance(repository / "instances" / "eurora-like-0050.json.gz"))
    with served(source) as url:
        yield url


def rows(page: Page) -> Locator:
    """Return the rows of the list, when it is there."""
    found = page.locator("#table tbody tr")
    found.first.wait_for()
    return found


def eventually(place: Locator, text: str | re.Pattern[str]) -> None:
    """Wait until an element has a text."""
    from playwright.sync_api import expect

    expect(place).to_contain_text(text, timeout=60_000)


def focused(place: Locator) -> None:
    """Wait until an element has the focus, and is not drawn anew any more."""
    from playwright.sync_api import expect

    expect(place).to_be_focused(timeout=60_000)


@pytest.mark.parametrize(("screen", "scheme"), SCREENS)
def test_it_opens_on_every_screen(address: str, visits: Visits, screen: tuple[int, int], scheme: str) -> None:
    """Jobs, the map of the cluster and the figures are there, and nothing is wider than the screen."""
    page = visits.open(address, screen=screen, scheme=scheme)
    assert rows(page).count() == (25 if screen == WIDE else 15)
    eventually(page.locator("#link"), "live")
    eventually(page.locator("#status"), "Planned 50" if screen == WIDE else "Planned")
    eventually(page.locator("#map figure").first, "nodes in use")
    assert not is_wider_than_screen(page)
    assert looks_wrong(page) == []
    assert is_hard_to_use(page) == []


def test_search_sort_and_pages(address: str, visits: Visits) -> None:
    """The list is searched, sorted both ways, turned, and the address keeps what was asked for."""
    page = visits.open(address)
    total = page.locator("#range")
    rows(page)
    eventually(total, re.compile(r"^1.25 of \d+ jobs"))
    page.locator("#next").click()
    eventually(total, re.compile(r"^26."))
    page.get_by_role("button", name="Walltime").click()
    eventually(page.locator("th[aria-sort='ascending']"), "Walltime")
    eventually(total, re.compile(r"^1.25"))
    page.get_by_role("button", name="Walltime").click()
    eventually(page.locator("th[aria-sort='descending']"), "Walltime")
    page.get_by_role("button", name="Planned").click()
    page.get_by_role("searchbox").fill("DEBUG")
    page.wait_for_url("**/?status=planned&search=DEBUG&sort=walltime&descending=true")
    queues = page.locator("#table tbody td:nth-child(3)")
    eventually(queues.first, "debug")
    assert set(queues.all_inner_texts()) == {"debug"}
    page.get_by_role("searchbox").fill("no such job")
    eventually(page.locator("#jobs-note"), "No job with “no such job”")
    page.goto(f"{address}?status=running")
    eventually(rows(page).first, "running")
    assert page.get_by_role("button", name="Running").get_attribute("aria-pressed") == "true"


def test_why_not_earlier_by_keys_alone(address: str, visits: Visits) -> None:
    """A job is opened by Enter, says why it is not earlier, links to the job in the way, and is left by Escape."""
    page = visits.open(f"{address}?status=planned&sort=start&descending=true")
    link = rows(page).first.get_by_role("link")
    name = link.inner_text()
    link.focus()
    page.keyboard.press("Enter")
    eventually(page.locator("#job h2"), f"Job {name}")
    focused(page.locator("#job h2"))
    eventually(page.locator("#job .summary"), re.compile(r"Without job .* it could start|Too little|It could start"))
    assert page.locator("#job .blocked > li").count() >= 1
    holder = page.locator("#job .holders a").first
    other = holder.inner_text()
    holder.click()
    eventually(page.locator("#job h2"), f"Job {other}")
    assert page.url.endswith(f"#job/{other}")
    page.go_back()
    eventually(page.locator("#job h2"), f"Job {name}")
    page.keyboard.press("Escape")
    assert page.locator("#job").is_hidden()
    assert "#" not in page.url
    focused(link)


@pytest.mark.parametrize("screen", [WIDE, NARROW])
def test_what_if_it_asked_for_less(address: str, visits: Visits, screen: tuple[int, int]) -> None:
    """A click on a job, and less of everything: the page compares both starts; wrong walltimes are refused."""
    page = visits.open(f"{address}?status=planned&sort=start&descending=true", screen=screen)
    rows(page).first.click()
    question = page.locator("#job .question")
    ask = question.get_by_role("button", name="When would it start?")
    # the reasons stand above: when they come, the button moves away from a pointer that is about to click
    page.locator("#job .explanation", has_text="Looking for the reasons").wait_for(state="detached")
    ask.click()
    eventually(question, "Change something first")
    question.get_by_label("chunks").fill("1")
    question.get_by_label("cores each").fill("1")
    question.get_by_label("walltime").fill("1m")
    ask.click()
    eventually(question, re.compile(r"It would start .* earlier\."))
    assert question.locator(".compared").count() == 2
    assert not is_wider_than_screen(page)
    question.get_by_label("walltime").fill("soon")
    ask.click()
    eventually(question, "Expected a walltime such as 7200")
    assert [fault.split()[1] for fault in visits.faults if fault.startswith("answer")] == ["422"]
    visits.faults.clear()


def test_a_job_that_is_not_submitted(address: str, visits: Visits) -> None:
    """The form for a new job says when it would start."""
    page = visits.open(address)
    page.get_by_text("When would my job start?").click()
    form = page.locator("#try .question")
    form.get_by_label("request").fill("2:ncpus=2:mem=1g")
    form.get_by_label("walltime").fill("10m")
    form.get_by_role("button").click()
    eventually(form, re.compile("It would start (at once|in .*)"))


def test_the_map_by_pointer_and_keys(address: str, visits: Visits) -> None:
    """A node says what is used of it; arrow keys walk from one to the next; another resource colours them anew."""
    page = visits.open(address)
    page.locator("#map canvas").first.hover(position={"x": 5, "y": 5})
    eventually(page.locator("#node"), re.compile(r"^node\d+ "))
    eventually(page.locator("#node"), "cores")
    page.locator("#map canvas").first.focus()
    first = page.locator("#node strong").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#node strong").inner_text() != first
    page.keyboard.press("Enter")
    eventually(page.locator("#jobs-note"), "Jobs of node")
    page.get_by_role("button", name="all nodes").click()
    eventually(page.locator("#range"), "jobs")
    page.get_by_label("coloured by").select_option("mem")
    eventually(page.locator("#map figure").first, "of mem used")


@pytest.mark.parametrize("screen", [WIDE, NARROW])
def test_the_map_by_switch(serve: Serve, visits: Visits, repository: Path, screen: tuple[int, int]) -> None:
    """Where the cluster has a topology, the map is grouped by it; a folded group stays so, and the others are shown."""
    page = visits.open(
        serve(DocumentSource(read_instance(repository / "instances" / "tiny-topology.json"))), screen=screen
    )
    groups = page.locator("#map figure")
    eventually(groups.first, re.compile("switch s1 .*of 2 nodes in use"))
    assert groups.count() == 2
    groups.first.locator("summary").click()
    page.get_by_label("coloured by").select_option("most used resource")
    assert [groups.nth(place).locator("canvas").is_visible() for place in range(2)] == [False, True]
    assert is_hard_to_use(page) == []
    page.get_by_label("grouped by").select_option("kind of node")
    eventually(groups.first, "of 4 nodes in use")
    assert groups.count() == 1


@pytest.mark.parametrize(("screen", "scheme"), [SCREENS[0], SCREENS[-1]])
def test_hostile_names_are_text(serve: Serve, visits: Visits, screen: tuple[int, int], scheme: str) -> None:
    """Jobs, users, queues and nodes with markup as names are text in the list, the map, details and explanation."""
    url = serve(DocumentSource(*a_plan(HOSTILE)))
    page = visits.open(url, screen=screen, scheme=scheme)
    assert rows(page).count() == 6
    page.get_by_role("link", name=HOSTILE[0]).click()
    eventually(page.locator("#job h2"), HOSTILE[0])
    page.goto(f"{url}#job/w")
    eventually(page.locator("#job h2"), "Job w")
    eventually(page.locator("#job .summary"), re.compile("."))
    if screen == WIDE:
        page.locator("#map canvas").first.hover(position={"x": 5, "y": 5})
        eventually(page.locator("#node"), HOSTILE[0])
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert not is_wider_than_screen(page)
    assert "\u202e" not in page.locator("body").inner_text()
    assert page.evaluate("document.title").startswith(HOSTILE[0])


@pytest.mark.slow
def test_a_large_machine(serve: Serve, visits: Visits) -> None:
    """Of 10,000 jobs on 5,000 nodes the list shows a page, finds one, and the map has all nodes."""
    url = serve(DocumentSource(*wide_plan()))
    page = visits.open(url)
    eventually(page.locator("#range"), "25 of 10,000 jobs")
    page.locator("#last").click()
    eventually(page.locator("#range"), "10,000 of 10,000")
    page.get_by_role("searchbox").fill("105000")
    eventually(rows(page).first, "105000")
    eventually(page.locator("#map figure").first, "of 4,000 nodes in use")
    canvas = page.locator("#map canvas").first
    canvas.focus()
    page.keyboard.press("End")
    eventually(page.locator("#node"), "cpu4000")


def test_a_link_to_no_job(address: str, visits: Visits) -> None:
    """A link to a job that is over says so, and the list is there."""
    page = visits.open(f"{address}#job/gone")
    eventually(page.locator("#job"), "There is no such job any more")
    assert rows(page).count() == 25
    visits.faults.remove(next(fault for fault in visits.faults if fault.startswith("answer: 404")))
    visits.faults.remove(next(fault for fault in visits.faults if "404" in fault))


def test_a_daemon_as_it_works(serve: Serve, visits: Visits, tmp_path: Path) -> None:
    """The page shows the daemon's health, and a new cycle's jobs and moved starts without being loaded again."""
    entries = [job(f"j{number}", walltime=600, runtime=50 if number < 2 else 600) for number in range(6)]
    daemon = live(site(*entries, job("late", walltime=300, submit=90)), tmp_path)
    daemon.cycle()
    there = daemon.manager.world  # type: ignore[attr-defined]  # it is the one in memory
    there.advance(there.now + 10)
    daemon.cycle()
    url = serve(StoreSource(f"sqlite:///{tmp_path}/cpsched.db"))
    page = visits.open(f"{url}?sort=id")
    eventually(page.locator("#health"), "✓ works")
    eventually(page.locator("#health"), "of the last 2 cycles")
    assert rows(page).count() == 6
    page.get_by_role("link", name="j5").click()
    eventually(page.locator("#job"), "told once")
    page.locator("#job").get_by_label("walltime").fill("7m")
    there.advance(there.now + 90)
    chooses(daemon)
    daemon.cycle()
    eventually(page.locator("#health"), "easy 0.50 ✓, fcfs 1.25 of planner")
    eventually(page.locator("#table"), "late")
    eventually(page.locator("#health"), "of the last 3 cycles")
    eventually(page.locator("#job"), "moved 1 time")
    eventually(page.locator("tr[data-job='j5'] .moves"), "▼")


def test_a_lost_connection(visits: Visits, repository: Path) -> None:
    """Without a server the page says that the connection is lost and when it tries again; then it is live again."""
    source = repository / "instances" / "tiny-bridi.json"
    with ExitStack() as first:
        url = first.enter_context(served(DocumentSource(read_instance(source))))
        page = visits.open(url)
        eventually(page.locator("#link"), "live")
        rows(page)
    eventually(page.locator("#link"), "connection lost, retrying")
    page.get_by_role("button", name="Try now").click()
    eventually(page.locator("#link"), "connection lost, retrying")
    with served(DocumentSource(read_instance(source)), port=int(url.rstrip("/").rpartition(":")[2])):
        page.get_by_role("button", name="Try now").click()
        eventually(page.locator("#link"), "live")
        assert rows(page).count() > 0
        # before the server ends: the page would try again, at any moment until this test is over
        visits.close()
    assert all("ERR_" in fault for fault in visits.faults)
    visits.faults.clear()


def test_a_silent_daemon(serve: Serve, visits: Visits, tmp_path: Path) -> None:
    """A daemon that has written nothing for an hour is called silent, in a notice too, until it has ended a cycle."""
    daemon = live(site(job("a"), job("b")), tmp_path)
    daemon.cycle()
    page = visits.open(serve(StoreSource(f"sqlite:///{tmp_path}/cpsched.db")))
    notice = page.locator("#silent")
    eventually(page.locator("#health"), "✓ works")
    assert notice.is_hidden()
    daemon.store.set_present(1000, time.time() - 3600, None)
    eventually(page.locator("#health"), "✕ silent")
    eventually(notice, "The daemon has been silent for 1 h")
    assert looks_wrong(page) == []
    daemon.cycle()
    eventually(page.locator("#health"), "✓ works")
    assert notice.is_hidden()


@pytest.mark.parametrize(("screen", "scheme"), [SCREENS[0], SCREENS[-1]])
def test_jobs_of_others_have_other_names(serve: Serve, visits: Visits, screen: tuple[int, int], scheme: str) -> None:
    """Where the site hides whose jobs there are the page has no such name, says so, and explains with other names."""
    settings = replace(QUICK, tokens=TOKENS)
    url = serve(DocumentSource(users_site()), settings=settings, visibility=Visibility.ANONYMOUS)
    page = visits.open(url, screen=screen, scheme=scheme)
    assert rows(page).count() == 6
    eventually(page.locator("#seen"), "Jobs of others have other names here")
    assert {name.partition("-")[0] for name in page.locator("#table tbody a").all_inner_texts()} == {"other"}
    assert page.get_by_role("link", name="Gantt chart").is_hidden()
    page.get_by_role("button", name="Give a token").click()
    page.get_by_label("Your token for this server").fill(BOB)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name="b2", exact=True).click()
    eventually(page.locator("#job .blocked").first, "other-")
    # as words: the other names are drawn at random, and may have any of them inside
    assert not re.search(r"\b(alice|carol|secret|a1|r1)\b", page.locator("body").inner_text())
    assert page.get_by_role("button", name="Give a token").is_hidden()
    assert looks_wrong(page) == []
    assert not is_wider_than_screen(page)


def test_only_own_jobs_are_listed(serve: Serve, visits: Visits) -> None:
    """Where jobs are for their owners a reader without a token has none, and alice hers; operators see all."""
    settings = replace(QUICK, tokens=TOKENS)
    url = serve(DocumentSource(users_site()), settings=settings, visibility=Visibility.OWN)
    for token, seen in ((None, set()), (ALICE, {"r1", "r2", "a1"}), (OPERATOR, {"r1", "r2", "a1", "b1", "b2", "x"})):
        page = visits.open(url)
        eventually(page.locator("#seen"), "Jobs are listed for their owners only")
        eventually(page.locator("#status"), "Running 2")
        if token is not None:
            page.get_by_role("button", name="Give a token").click()
            page.get_by_label("Your token for this server").fill(token)
            page.get_by_role("button", name="Continue").click()
            assert rows(page).count() == len(seen)
        assert set(page.locator("#table tbody a").all_inner_texts()) == seen
        assert page.locator("#seen").is_hidden() == (token == OPERATOR)


class Nothing(DocumentSource):
    """A source that knows nothing until it is told to. Mutable."""

    is_ready = False

    def read(self) -> View | None:
        """Return the state, if it may."""
        return super().read() if self.is_ready else None


def test_before_the_first_cycle(serve: Serve, visits: Visits, repository: Path) -> None:
    """As long as nothing is known the page says what it waits for; then it shows it by itself."""
    source = Nothing(read_instance(repository / "instances" / "tiny-bridi.json"))
    url = serve(source)
    page = visits.open(url)
    eventually(page.locator("#loading"), "the daemon has not ended its first cycle")
    assert page.locator("main").is_hidden()
    source.is_ready = True
    rows(page)
    assert page.locator("#loading").is_hidden()
    assert all("503" in fault for fault in visits.faults)
    visits.faults.clear()


def test_a_token(serve: Serve, visits: Visits, repository: Path) -> None:
    """Where tokens are needed the page asks for one, refuses a wrong one, and keeps the right one for its tab."""
    token = "a token of a test"  # noqa: S105 - of this server alone
    known = Token(sha256=hashlib.sha256(token.encode()).hexdigest(), operator=True)
    settings = replace(QUICK, tokens=(known,), is_loopback=False)
    url = serve(DocumentSource(read_instance(repository / "instances" / "tiny-bridi.json")), settings=settings)
    page = visits.open(url)
    form = page.locator("#entry")
    for word in ("wrong", token):
        form.get_by_label("Your token for this server").fill(word)
        form.get_by_role("button").click()
    rows(page)
    eventually(page.locator("#link"), "live")
    assert form.is_hidden()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Gantt chart").click()
    assert "<title>" in saved.value.path().read_text(encoding="utf-8")
    assert all("401" in fault for fault in visits.faults)
    visits.faults.clear()


def test_the_chart_is_a_click_away(address: str, visits: Visits) -> None:
    """The plan's Gantt chart opens under its own policy."""
    page = visits.open(address)
    rows(page)
    page.get_by_role("link", name="Gantt chart").click()
    eventually(page.locator("#sentence"), "waiting jobs have a start")
    assert page.locator("#plot").bounding_box() is not None

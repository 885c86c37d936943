"""The documentation as a site: built without a warning, nothing from outside, opened in a browser from a folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from cpsched.cli import main
from tests.browser.driving import NARROW, SCREENS, WIDE, Visits, is_hard_to_use, is_wider_than_screen

pytestmark = pytest.mark.slow

#: The attributes by which an element loads something.
LOADED_BY = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Loads(HTMLParser):
    """What a page loads when it is opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element loads; links to other pages load nothing."""
        found = dict(attrs)
        target = found.get(LOADED_BY.get(tag, ""))
        if target and not (tag == "link" and found.get("rel") in ("canonical", "prev", "next")):
            self.targets.append(target)


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(repository), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return folder


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    """Scripts, styles, fonts and pictures are in the folder of the site, so that it can be read offline."""
    pages = sorted(site.rglob("*.html"))
    assert (site / "index.html") in pages
    for page in pages:
        for target in Loads(page.read_text(encoding="utf-8")).targets:
            assert not re.match(r"(\w+:)?//", target), f"{page.name}: {target}"
            if page.name != "404.html":
                assert (page.parent / target.partition("?")[0]).exists(), f"{page.name}: {target}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()[\s\"']*(https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_the_reference_is_made_of_the_code(site: Path) -> None:
    """Commands, exit codes, keys, words and schemas are on the pages, and no mark of a place for them is left."""
    text = {page.stem: page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")}
    for command in main.list_commands(click.Context(main)):
        assert f">cpsched {command}<" in text["cli"], command
    assert "<td>130</td>" in text["exit-codes"]
    assert "watchdog" in text["site"]
    assert "cool_down" in text["campaign"]
    assert 'id="cpsched.Model.add_job"' in text["python"]
    assert "waiting room" in (site / "words.html").read_text(encoding="utf-8")
    for name in ("instance", "plan"):
        assert "properties" in json.loads((site / "reference" / f"{name}.schema.json").read_text(encoding="utf-8"))
    for page in site.rglob("*.html"):
        assert not re.search(r"<!-- generated|console varying", page.read_text(encoding="utf-8")), page.name


def test_the_index_of_the_search_is_a_script_too(site: Path) -> None:
    """A page that was opened from a folder may load scripts, and no other file."""
    script = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("var __index = ").rstrip(";\n"))
    assert {"tutorial.html", "concepts/rusv.html", "formats.html"} <= {entry["location"] for entry in index["docs"]}


def test_the_drawings_are_made_by_the_script(repository: Path, tmp_path: Path) -> None:
    """The script draws what the pages show, each as a picture that is no wider than a phone and says what it shows."""
    command = [sys.executable, str(repository / "scripts" / "make_drawings"), "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command
    pages = "".join(page.read_text(encoding="utf-8") for page in (repository / "docs").rglob("*.md"))
    assert {path.name for path in tmp_path.iterdir()} == set(re.findall(r"drawings/([\w-]+\.svg)", pages))
    for path in tmp_path.iterdir():
        root = ElementTree.parse(path).getroot()  # noqa: S314 - ours
        assert float(root.attrib["viewBox"].split()[2]) < 390
        assert root.findtext("{http://www.w3.org/2000/svg}title"), path.name


def test_the_search_finds_from_a_folder(site: Path, visits: Visits) -> None:
    """Without a server, on a page in a folder of its own, the search finds a page and leads to it."""
    page = visits.open((site / "concepts" / "rusv.html").as_uri())
    page.click("input.md-search__input")
    page.keyboard.type("ruin and recreate")
    page.click(".md-search-result__link >> text=Search >> nth=0")
    page.wait_for_url("**/concepts/search.html*")


@pytest.mark.parametrize("name", ["index", "tutorial", "comparison", "concepts/bounds", "reference/cli", "benchmarks"])
def test_no_page_is_wider_than_a_phone(site: Path, visits: Visits, name: str) -> None:
    """Wide tables and commands scroll by themselves, the page does not."""
    assert not is_wider_than_screen(visits.open((site / f"{name}.html").as_uri(), screen=NARROW))


@pytest.mark.parametrize("name", ["index", "formats"])
def test_pages_can_be_read_by_keys_and_ears(site: Path, visits: Visits, name: str) -> None:
    """axe-core finds nothing serious, at a desk in the light scheme and on a phone in the dark one."""
    for screen, scheme in ((WIDE, "light"), (NARROW, "dark")):
        assert is_hard_to_use(visits.open((site / f"{name}.html").as_uri(), screen=screen, scheme=scheme)) == []


def test_drawings_are_dark_on_dark_pages(site: Path, visits: Visits) -> None:
    """A drawing follows the scheme of the page, also where its reader has switched that by hand."""
    corners = {}
    for screen, scheme in SCREENS:
        page = visits.open((site / "concepts" / "rusv.html").as_uri(), screen=screen, scheme=scheme)
        picture = page.locator("img[src*=drawings]").first
        corners[screen, scheme] = picture.screenshot()
        page.click("form[data-md-component=palette] label:not([hidden])")
        page.wait_for_timeout(300)
        assert picture.screenshot() != corners[screen, scheme], "the drawing does not follow the switch"

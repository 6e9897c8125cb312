"""The page: everything in one file, and nothing in it that acts."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from overnight.core.summary import Summary
from overnight.model.outcome import Exited
from overnight.watch.page import page_text
from overnight.watch.scene import Scene
from tests.watch.kit import report, task

if TYPE_CHECKING:
    from collections.abc import Sequence

RERUN = "overnight resume -R 'my <run>'"
LOADING = ("src", "href", "srcset", "action", "xlink:href", "data", "poster")


class Page(HTMLParser):
    """What a browser makes of a page: tags, attributes, and text by tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append((self.tags[-1] if self.tags else "", data))

    def text(self) -> str:
        return "".join(data for _, data in self.texts)


def page(command: bytes = b"true", err: bytes = b"", notes: Sequence[str] = ()) -> Page:
    summary = Summary()
    summary.add(task(0), report(0, elapsed_s=90), "n1")
    summary.add(task(1, command), report(1, Exited(3), err=err, rss_kib=2_048_000), "n1")
    scene = Scene(10, 10, "Tasks_7f", "a run", [])
    return Page(page_text(scene, summary, RERUN, notes, lambda at: "23:00"))


def test_the_page_tells_what_the_summary_tells() -> None:
    text = page(b"./step 7", b"no such row\n", ["2 lines are torn"]).text()
    for words in (
        "Tasks_7f: 2 tasks: 1 done, 1 failed", "23:00 to 23:00", "1 × exit code 3", "no such row",
        "./step 7", "1 min 30 s", "2.0 GiB", RERUN, "2 lines are torn",
    ):
        assert words in text


def test_the_picture_is_in_the_page() -> None:
    assert "svg" in page().tags


def test_nothing_is_loaded_and_nothing_runs() -> None:
    shown = page()
    assert {"script", "link", "img", "iframe", "object", "embed", "form"}.isdisjoint(shown.tags)
    names = [name for name, _ in shown.attributes]
    assert not [name for name in names if name in LOADING or name.startswith("on")]
    policy = dict(shown.attributes)["content"]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in shown.attributes, policy


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_tasks_wrote_the_page_has_the_same_elements(command: bytes, err: bytes) -> None:
    hostile = page(command, b"x" + err)
    assert hostile.tags == page(err=b"x").tags


def test_markup_of_tasks_is_shown_as_text() -> None:
    shown = page(b"echo '</code><script>alert(1)</script>'")
    assert "echo '</code><script>alert(1)</script>'" in shown.text()


def test_a_run_without_failures_offers_no_rerun() -> None:
    summary = Summary()
    summary.add(task(0), report(0), "n1")
    text = page_text(Scene(10, 10, "t", "d", []), summary, RERUN, [], lambda at: "23:00")
    assert "overnight resume" not in text
    assert "What went wrong" not in text

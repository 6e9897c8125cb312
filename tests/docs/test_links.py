"""Links of the documents lead somewhere, and every page is reached."""

from __future__ import annotations

import pytest

from tests.docs.pages import DOCS, ROOT, Page, page, pages

FOREIGN = ("http://", "https://", "mailto:")


@pytest.mark.parametrize("read", pages(), ids=lambda read: read.name)
def test_every_link_of_a_page_leads_somewhere(read: Page) -> None:
    dead = [target for target in read.links if not _leads_somewhere(read, target)]
    assert not dead, f"{read.name} has links that lead nowhere: {dead}"


def _leads_somewhere(read: Page, target: str) -> bool:
    if target.startswith(FOREIGN):
        return True
    name, _, anchor = target.partition("#")
    path = (read.path.parent / name).resolve() if name else read.path
    if not path.exists():
        return False
    return not anchor or anchor in page(str(path.relative_to(ROOT))).anchors


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in _index_links()}
    missing = [str(path) for path in DOCS.rglob("*.md") if path not in {index, *listed}]
    assert not missing, f"docs/README.md does not name {missing}"


def _index_links() -> list[str]:
    return [link for link in page("docs/README.md").links if not link.startswith(FOREIGN)]

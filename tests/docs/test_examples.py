"""What the documents have somebody type does what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import pages
from tests.docs.session import Session, play, session_of


def _parameter(session: Session) -> Any:
    marks = [pytest.mark.slow] if session.is_slow else []
    return pytest.param(session, id=session.name, marks=marks)


@pytest.mark.parametrize(
    "session", [_parameter(each) for each in map(session_of, pages()) if each is not None]
)
def test_a_session_shows_what_its_page_shows(session: Session, tmp_path: Path) -> None:
    folder, kept = tmp_path / "scratch", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    differences = play(session, folder, kept)
    if differences:
        pytest.fail("\n\n".join([session.name, *differences]), pytrace=False)

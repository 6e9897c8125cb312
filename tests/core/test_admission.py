"""Who is let in at the door of a run, decided without a socket."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overnight.core.admission import (
    HANDSHAKE_S,
    MAKES_ROOM_AFTER_S,
    MOST_HANDSHAKES,
    Admission,
    Secrets,
)
from overnight.model.roles import ROLES

FULL, WATCHING = b"f" * 32, b"w" * 32


@given(st.binary(min_size=32, max_size=32), st.sampled_from(ROLES))
def test_only_the_secrets_admit(offered: bytes, role: str) -> None:
    expected = offered == FULL or (offered == WATCHING and role == "monitor")
    assert Secrets(FULL, WATCHING).admit(offered, role) is expected


def test_the_full_secret_admits_every_role_and_the_other_one() -> None:
    secrets = Secrets(FULL, WATCHING)
    assert [secrets.admit(FULL, role) for role in ROLES] == [True] * len(ROLES)
    assert [role for role in ROLES if secrets.admit(WATCHING, role)] == ["monitor"]


@given(st.lists(st.tuples(st.sampled_from("bte"), st.floats(0, 3)), max_size=300))
def test_no_handshake_outstays_its_time_and_none_goes_early(steps: list[tuple[str, float]]) -> None:
    admission, at, began = Admission(), 0.0, {}
    for number, (step, passed) in enumerate(steps):
        if step == "t":
            at += passed
        elif step == "e" and began:
            admission.end(key := next(iter(began)))
            del began[key]
        elif step == "b" and admission.room > 0:
            admission.begin(number, at)
            began[number] = at
        assert 0 <= admission.room == MOST_HANDSHAKES - len(began)
        wake_at = admission.wake_at()
        overdue = admission.overdue(at)
        assert (wake_at is not None and wake_at <= at) is bool(overdue) or not began
        for key in overdue:
            assert at - began[key] >= MAKES_ROOM_AFTER_S
            admission.end(key)
            del began[key]
        assert all(at - since < HANDSHAKE_S for since in began.values())

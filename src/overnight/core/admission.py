"""Who is let in at the door of a run, and how long one may stand in it.

A handshake costs a stranger nothing and the run a little, so their number, their time and
what they may say before the secret are bounded. When all places are taken, who has stood
there longest makes room after a moment: a flood of silent connections delays an engine by
that moment and cannot keep it out.
"""

from __future__ import annotations

from hmac import compare_digest

from overnight.model.roles import MONITOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

MOST_HANDSHAKES = 64
HANDSHAKE_S = 5.0
MAKES_ROOM_AFTER_S = 1.0
MOST_BYTES = 4096
"""Encrypted bytes a client may send before its secret is known."""


class Secrets:
    """The two secrets of a run: for full control, and for those who only watch."""

    __slots__ = ("_full", "_watching")

    def __init__(self, full: bytes, watching: bytes) -> None:
        self._full = full
        self._watching = watching

    def admit(self, offered: bytes, role: str) -> bool:
        """Whether who offers this may be that. Takes the same time whatever is offered."""
        is_full = compare_digest(offered, self._full)
        is_watching = compare_digest(offered, self._watching)
        return is_full or (is_watching and role == MONITOR)


class Admission:
    """The handshakes that are under way."""

    def __init__(self) -> None:
        self._since: dict[Hashable, float] = {}  # in the order they began

    @property
    def room(self) -> int:
        """How many more may begin now."""
        return MOST_HANDSHAKES - len(self._since)

    def begin(self, key: Hashable, at: float) -> None:
        """A handshake has begun."""
        self._since[key] = at

    def end(self, key: Hashable) -> None:
        """It is over, however it went."""
        self._since.pop(key, None)

    def overdue(self, at: float) -> list[Hashable]:
        """Those that have to go now; each is still to be told to ``end``."""
        limit_s = HANDSHAKE_S if self.room > 0 else MAKES_ROOM_AFTER_S
        return [key for key, since in self._since.items() if at - since >= limit_s]

    def wake_at(self) -> float | None:
        """When the next one is overdue, or None."""
        if not self._since:
            return None
        limit_s = HANDSHAKE_S if self.room > 0 else MAKES_ROOM_AFTER_S
        return next(iter(self._since.values())) + limit_s

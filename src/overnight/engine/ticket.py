"""What an engine has that joined a run by itself: who it is, and how it calls again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from select import epoll

    from overnight.engine.caller import Caller
    from overnight.engine.polled import PolledLink
    from overnight.net.tls import TlsStream


class Ticket:
    """The right to call a run.

    Attributes:
        about: What the driver is told in HELLO under ``join``; see ``model.messages``.
        first: The connection it begins with.
        caller: Calls again when that has ended.
    """

    __slots__ = ("about", "caller", "first")

    def __init__(self, about: Mapping[str, object], first: TlsStream, caller: Caller) -> None:
        self.about = about
        self.first = first
        self.caller = caller

    @staticmethod
    def link(poll: epoll, stream: TlsStream) -> PolledLink:
        """A link over a connection that was let in."""
        from overnight.engine.polled_tls import PolledTlsLink

        return PolledTlsLink(poll, stream)  # type: ignore[return-value]  # the same face

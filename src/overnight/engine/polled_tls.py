"""A link inside TLS in an epoll set: for an engine that has called its run."""

from __future__ import annotations

from select import EPOLLIN

from overnight.engine.polled import PolledLink
from overnight.net.tls import TlsLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from select import epoll

    from overnight.net.tls import TlsStream


class PolledTlsLink(TlsLink):
    """As ``PolledLink``, over a stream whose handshake is over."""

    __slots__ = ("_is_writing", "_poll")

    def __init__(self, poll: epoll, stream: TlsStream) -> None:
        super().__init__(stream)
        self._poll = poll
        self._is_writing = False
        poll.register(self.read_fd, EPOLLIN)

    # One descriptor and the same two attributes: what a polled link does fits here as it is.
    push = PolledLink.push
    push_all = PolledLink.push_all
    _watch_writing = PolledLink._watch_writing

    def close(self) -> None:
        """Close the descriptor; what was not flushed is lost."""
        PolledLink._unwatch(self)  # type: ignore[arg-type]  # as above
        super().close()

"""Waiting for descriptors: epoll where there is one, else poll; the same small face.

Not ``selectors``: it costs an engine 10 ms of imports, and hides epoll behind objects.
"""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READ, WRITE = select.POLLIN, select.POLLOUT


class Poller:
    """Descriptors and what is awaited on each."""

    def __init__(self) -> None:
        self._has_epoll = hasattr(select, "epoll")
        self._poll: Any = select.epoll() if self._has_epoll else select.poll()
        self._masks: dict[int, int] = {}

    def watch(self, fd: int, mask: int) -> None:
        """Await ``mask`` on this descriptor, instead of what was awaited before.

        Raises:
            PermissionError: It cannot be waited for (a regular file always has data).
        """
        known = self._masks.get(fd)
        if known is None:
            self._poll.register(fd, mask)
        elif known != mask:
            self._poll.modify(fd, mask)
        self._masks[fd] = mask

    def forget(self, fd: int) -> None:
        """Await nothing on it any more; to be called before it is closed."""
        if self._masks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
        """Descriptors that are ready, with what for; empty at the time limit.

        A signal does not end the waiting; its handler has to make something ready.
        """
        if timeout_s is None:
            return self._poll.poll()  # type: ignore[no-any-return]  # epoll and poll agree here
        limit = timeout_s if self._has_epoll else int(timeout_s * 1000 + 0.999)
        return self._poll.poll(limit)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Give the descriptor of epoll back."""
        if self._has_epoll:
            self._poll.close()

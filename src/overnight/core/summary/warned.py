"""What a run has warned of, in bounded memory, for those who were not looking."""

from __future__ import annotations

from overnight.core.summary.words import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WARNINGS_KEPT = 5

_OF_A_SIGNAL = "SIG"
"""What is said when the run is interrupted begins so, and is answered by its ending."""


class Warned:
    """The first few warnings of a run, each once, and how many there were besides.

    Attributes:
        texts: Of those that are kept.
        more: So many others there were.
    """

    __slots__ = ("more", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.more = 0

    def add(self, text: str) -> bool:
        """Take in a warning; whether it is a new one that is kept."""
        if text.startswith(_OF_A_SIGNAL) or text in self.texts:
            return False
        if len(self.texts) == WARNINGS_KEPT:
            self.more += 1
            return False
        self.texts.append(text)
        return True

    def lines(self, log: str) -> Iterator[str]:
        """What to say of them; nothing where there were none.

        Args:
            log: Where all of them stand.
        """
        if not self.texts:
            return
        yield "Warnings"
        for text in self.texts:
            yield from (f"  {visible(line)}" for line in text.split("\n"))
        if self.more:
            yield f"  and {self.more:,} more in {log}"

"""The language of task lists: what each line of a list means.

``TaskReader`` turns lines into items, one line at a time, for files and live streams
alike. It always reads leniently, as disBatch does, and says beside it which lines look
like a directive and would not be read as the one they look like (``Suspicion``). Whether
a suspicion stops the run is decided elsewhere. ``ListScan`` finds the same suspicions in a
whole file, and counts what it holds, without making a task.

A list is bytes. Lines end at LF; CR and CRLF inside one part it into pieces that share its
number. Nothing is taken from a task line: prefix, line and suffix are joined to the byte.

Where this reading differs from disBatch 3.0, on purpose:

* A UTF-8 byte-order mark before the first line is skipped.
* A PERENGINE after the first task is passed over and reading goes on (disBatch drops
  every task behind it).
* ``start`` and ``stop`` of PERENGINE are read in any case (disBatch crashes).
* A REPEAT whose numbers leave 64 bits is not a directive.
"""

from __future__ import annotations

from overnight.errors import ListRefused
from overnight.model.task import NO_REPEAT, Barrier, PerEngine, PlainTasks, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    Read: TypeAlias = "Task | Barrier | PerEngine | Suspicion"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MARK = b"#DISBATCH"
KEYWORDS = (b"PERENGINE", b"PREFIX", b"SUFFIX", b"REPEAT", b"BARRIER")
CHECK = b"CHECK"

SHOWN_FINDINGS = 20
SHOWN_TEXT = 120

_LAST_SPECIAL = ord("#")  # a line that begins with a greater byte is a task, whatever follows
_FIRST_PLAIN = bytes([_LAST_SPECIAL + 1])  # such lines are not less than this
_FIRST_STEP = 16
_MOST_WRAPPING = 1 << 20  # bytes of prefixes and suffixes for which tasks are made in one go
_NUMBER_END = 1 << 63  # indices travel as signed 64 bit numbers
_NUMBER_DIGITS = 19


class Suspicion:
    """A line that looks like a directive and is not read as the one it looks like.

    Attributes:
        line: Physical line, from 1 (the item's index for a stream).
        found: The line as it stands in the list.
        reason: How it is read instead; follows the quoted line in a sentence.
        at_head: Whether it stands where PERENGINE is allowed.
    """

    __slots__ = ("at_head", "found", "line", "reason")

    def __init__(self, line: int, found: bytes, reason: str, at_head: bool) -> None:
        self.line = line
        self.found = found
        self.reason = reason
        self.at_head = at_head

    @property
    def should_read(self) -> bytes:
        """The line as it was probably meant; empty when only the user can know.

        In the place of the one found it would be read without a suspicion.
        """
        return _should_read(self.found, self.at_head)

    def words(self, list_name: str) -> str:
        """The finding in one line, with file, line, text found and text meant."""
        told = f'{list_name}, line {self.line}: "{shown(self.found)}" {self.reason}'
        meant = self.should_read
        if meant:
            return f'{told}; it should read "{shown(meant)}"'
        if not self.at_head and self.found[9:20].upper() == b" PERENGINE ":
            return f"{told}; it should stand before the first task"
        return f"{told}; what it should read only you can know"

    def __repr__(self) -> str:
        return f"Suspicion({self.line}, {self.found!r}, {self.reason!r}, {self.at_head})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Suspicion):
            return NotImplemented
        return (self.line, self.found, self.reason, self.at_head) == (
            other.line,
            other.found,
            other.reason,
            other.at_head,
        )

    def __hash__(self) -> int:
        return hash((self.line, self.found))


class TaskReader:
    """One list or stream being read: prefix, suffix, numbering and what is still allowed.

    Attributes:
        line: Physical lines (stream items) read so far.
        next_id: Id of the next task or barrier; so many were read.
        barriers: So many of them were barriers.
        unknown: Directives that were not known, and so passed over.
        perengine_late: Whether a PERENGINE came after the first task.
    """

    __slots__ = (
        "_at_head",
        "_prefix",
        "_starts",
        "_stops",
        "_suffix",
        "_wrapped",
        "barriers",
        "line",
        "next_id",
        "perengine_late",
        "unknown",
    )

    def __init__(self) -> None:
        self.line = 0
        self.next_id = 0
        self.barriers = 0
        self.unknown = 0
        self.perengine_late = False
        self._prefix = b""
        self._suffix = b""
        self._wrapped = False  # whether a prefix or suffix is in force
        self._at_head = True
        self._starts = 0
        self._stops = 0

    @property
    def wrap(self) -> tuple[bytes, bytes]:
        """Prefix and suffix in force for the next line."""
        return self._prefix, self._suffix

    def read_line(self, raw: bytes) -> Iterable[Read]:
        """Give what the next physical line makes, a suspicion before what it is about.

        Args:
            raw: One line, with its LF or without.

        Returns:
            Items and suspicions in order. What a REPEAT makes is made when it is asked
            for; everything else, and the state for the next line, is settled on return.
        """
        pieces = raw.splitlines()
        if len(pieces) == 1 and self.line and pieces[0] and pieces[0][0] > _LAST_SPECIAL:
            self.line = line = self.line + 1
            return (self._task(pieces[0], line),)
        return _joined(self._read_pieces(pieces))

    def read_blocks(self, blocks: Iterable[Sequence[bytes]]) -> Iterator[Read | PlainTasks]:
        """Give what blocks of lines make, plain tasks together: the fast way through a file.

        Args:
            blocks: Physical lines without their LF.
        """
        for lines in blocks:
            at = 0
            while at < len(lines):
                plain = self.plain_tasks(lines, at)
                count = len(plain.commands)
                if count:
                    self.pass_tasks(count)
                    yield plain
                else:
                    yield from self.read_line(lines[at])
                at += count or 1

    def plain_tasks(self, lines: Sequence[bytes], begin: int) -> PlainTasks:
        """The tasks of lines up to the first one that is not simply a task. 0.1 us a line.

        They do not count as read: that is said with ``pass_tasks``.

        Args:
            lines: The physical lines that follow what was read, without their LF.
            begin: The first of them is here.
        """
        end = _plain_end(lines, begin) if self.line else begin  # the first may have a mark
        prefix, suffix = self._prefix, self._suffix
        if self._wrapped:
            end = min(end, begin + 1 + _MOST_WRAPPING // (len(prefix) + len(suffix)))
        commands = lines[begin:end]
        if self._wrapped:
            commands = [prefix + line + suffix for line in commands]
        return PlainTasks(self.next_id, self.line + 1, commands)

    def read_stream_item(self, raw: bytes) -> Iterable[Read]:
        """Give what the next item of a stream makes; its lines all have the item's index."""
        return _joined(self._read_pieces(raw.splitlines()))

    def read_suspicions(self, raw: bytes) -> list[Suspicion]:
        """Read the next physical line, but give its suspicions alone."""
        firsts = [next(iter(made), None) for made in self._read_pieces(raw.splitlines())]
        return [first for first in firsts if isinstance(first, Suspicion)]

    def read_piece(self, piece: bytes, line: int) -> Iterable[Read]:
        """Give what one piece of a line makes, a suspicion first.

        Args:
            piece: Bytes without LF and CR.
            line: The number its items bear. ``self.line`` is left alone.
        """
        if piece.startswith(MARK):
            return self._directive(piece, line)
        text = piece.lstrip()
        if text and text[0] != _LAST_SPECIAL:
            return (self._task(piece, line),)
        if text[:9].upper() != MARK:
            return ()
        reason = "is read as a comment: " + (
            "a blank stands before #DISBATCH"
            if text.startswith(MARK)
            else "#DISBATCH has capital letters"
        )
        return (Suspicion(line, piece, reason, self._at_head),)

    def pass_tasks(self, count: int) -> None:
        """Go over so many lines that are known to be one plain task each."""
        if count:
            self.line += count
            self.next_id += count
            self._at_head = False

    def _read_pieces(self, pieces: list[bytes]) -> list[Iterable[Read]]:
        """What each piece of the next line makes. A piece has at most one suspicion."""
        self.line = line = self.line + 1
        if line == 1 and pieces and pieces[0].startswith(BYTE_ORDER_MARK):
            pieces[0] = pieces[0][len(BYTE_ORDER_MARK) :]
        return [self.read_piece(piece, line) for piece in pieces]

    def _task(self, text: bytes, line: int) -> Task:
        self._at_head = False
        task_id = self.next_id
        self.next_id = task_id + 1
        return Task(task_id, line, NO_REPEAT, self._command(text))

    def _command(self, text: bytes) -> bytes:
        return self._prefix + text + self._suffix

    def _directive(self, piece: bytes, line: int) -> Iterable[Read]:
        """Read a piece that begins with #DISBATCH. The order of the tests is disBatch's."""
        rest = piece[9:]
        head = rest[:17].upper()
        if head.startswith((b" PERENGINE START ", b" PERENGINE STOP ")):
            return self._per_engine(piece, line)
        if head.startswith((b" PREFIX ", b" SUFFIX ")):
            self._wrap(head[1:2] == b"P", rest[8:])
            return ()
        # An unknown directive closes the part for PERENGINE too, as in disBatch; what the
        # line should read is asked with the part as it was.
        was_at_head = self._at_head
        self._at_head = False
        if head.startswith(b" REPEAT"):
            repeat = _repeat_numbers(rest)
            if repeat is not None:
                return self._repeat(piece, line, *repeat)
        if rest.startswith(b" BARRIER"):
            return self._barrier(piece, line, rest[8:])
        if rest.startswith(b" "):
            self.unknown += 1
            reason = "is no directive and is passed over"
            return (Suspicion(line, piece, reason, was_at_head),)
        reason = "is run as a task: no blank stands after #DISBATCH"
        return (Suspicion(line, piece, reason, was_at_head), self._task(piece, line))

    def _per_engine(self, piece: bytes, line: int) -> Iterable[Read]:
        at_start = piece[20:24].upper() == b"STAR"
        if not self._at_head:
            self.perengine_late = True
            return (Suspicion(line, piece, "comes too late and is passed over", False),)
        word_end = 25 if at_start else 24
        command = self._command(piece[word_end + 1 :])
        number = self._starts if at_start else self._stops
        if at_start:
            self._starts += 1
        else:
            self._stops += 1
        item = PerEngine(at_start, number, line, command)
        word = piece[20:word_end]
        if word.isupper():
            return (item,)
        reason = f"is read as {word.decode().upper()}, which has capital letters"
        return (Suspicion(line, piece, reason, True), item)

    def _wrap(self, is_prefix: bool, text: bytes) -> None:
        if is_prefix:
            self._prefix = text
        else:
            self._suffix = text
        self._wrapped = bool(self._prefix or self._suffix)

    def _repeat(
        self, piece: bytes, line: int, count: int, start: int, step: int, text: bytes
    ) -> Iterable[Read]:
        first_id = self.next_id
        self.next_id = first_id + count
        tasks = _repeated(first_id, line, count, start, step, self._command(text))
        word = text.split(None, 1)[0].lower() if text.strip() else b""
        if word not in (b"start", b"step"):
            return tasks
        reason = f'is read with "{word.decode()}" as the first word of the command'
        return _joined([(Suspicion(line, piece, reason, False),), tasks])

    def _barrier(self, piece: bytes, line: int, tail: bytes) -> Iterable[Read]:
        checks = tail.startswith(b" CHECK")
        after = tail[6:] if checks else tail
        key = after[1:] if after.startswith(b" ") else None
        item = Barrier(self.next_id, line, piece, key, checks)
        self.next_id += 1
        self.barriers += 1
        if not _is_odd_barrier(checks, after):
            return (item,)
        reason = "is read as a BARRIER CHECK" if checks else "is read as a BARRIER without CHECK"
        if key is not None:
            reason += f' and with the key "{shown(key)}"'
        return (Suspicion(line, piece, reason, False), item)


class ListScan:
    """A whole list looked through for suspicions, and counted, without making tasks.

    It agrees with ``TaskReader`` on every input. About 0.13 s for a million lines of
    90 bytes: only lines that begin with a blank or ``#`` are looked at one by one.
    """

    __slots__ = ("_find_special", "_reader", "_unfinished")

    def __init__(self) -> None:
        import re

        self._reader = TaskReader()
        self._unfinished: list[bytes] = []  # the line that the last block cut
        self._find_special: Callable[[bytes, int], Iterator[re.Match[bytes]]] = re.compile(
            rb"\n(?=[\t-\r #])"
        ).finditer

    @property
    def items(self) -> int:
        """Tasks and barriers so far, those of a REPEAT each counted."""
        return self._reader.next_id

    @property
    def tasks(self) -> int:
        """Tasks so far, those of a REPEAT each counted."""
        return self._reader.next_id - self._reader.barriers

    @property
    def lines(self) -> int:
        """Physical lines so far."""
        return self._reader.line

    def feed(self, block: bytes) -> list[Suspicion]:
        """Take the next bytes of the list, cut anywhere; give the suspicions they settle."""
        end = block.rfind(b"\n") + 1
        if not end:
            self._unfinished.append(block)
            return []
        lines = b"".join((b"\n", *self._unfinished, memoryview(block)[:end]))
        self._unfinished = [block[end:]]
        return self._scan(lines)

    def finish(self) -> list[Suspicion]:
        """Take what has come as the whole list; give what its last line is suspected of."""
        last = b"".join(self._unfinished)
        self._unfinished = []
        return self._reader.read_suspicions(last) if last else []

    def _scan(self, lines: bytes) -> list[Suspicion]:
        """Look through whole lines; a LF stands before the first."""
        if b"\r" in lines and lines.count(b"\r") != lines.count(b"\r\n"):
            return self._read_all(lines)  # a CR on its own ends a task within a line
        found: list[Suspicion] = []
        reader = self._reader
        begin = 1
        if reader.line == 0:
            begin = lines.index(b"\n", 1) + 1
            found += reader.read_suspicions(lines[1:begin])
        for special in self._find_special(lines, begin - 1):
            at = special.end()
            reader.pass_tasks(lines.count(b"\n", begin, at))
            begin = lines.index(b"\n", at) + 1
            found += reader.read_suspicions(lines[at:begin])
        reader.pass_tasks(lines.count(b"\n", begin))
        return found

    def _read_all(self, lines: bytes) -> list[Suspicion]:
        read = self._reader.read_suspicions
        return [found for line in lines[1:-1].split(b"\n") for found in read(line)]


def refusal(list_name: str, suspicions: Sequence[Suspicion], more: int = 0) -> ListRefused:
    """The error that tells what a list is refused for: every finding, and what to do.

    Args:
        list_name: The list as the user named it.
        suspicions: Findings to be told, at least one; about 20 of them are shown.
        more: How many there are besides.
    """
    lines = [suspicion.words(list_name) for suspicion in suspicions[:SHOWN_FINDINGS]]
    more += len(suspicions) - len(lines)
    if more:
        lines.append(f"{list_name}: {more} more such {'line' if more == 1 else 'lines'}")
    return ListRefused(
        "\n".join(lines),
        kept="no task was started",
        do='correct the list (a comment may begin with "# "), or have it read as disBatch '
        "reads it:  --directives lenient",
    )


def _plain_end(lines: Sequence[bytes], begin: int) -> int:
    """Where the lines end that are one task each, looked for in ever longer steps."""
    end = len(lines)
    step = _FIRST_STEP
    while begin < end:
        part = lines[begin : min(begin + step, end)]
        if min(part) < _FIRST_PLAIN or b"\r" in b"".join(part):
            break
        begin += len(part)
        step *= 2
    for index in range(begin, end):
        line = lines[index]
        if line < _FIRST_PLAIN or b"\r" in line:
            return index
    return end


def _joined(parts: list[Iterable[Read]]) -> Iterable[Read]:
    """One part after the other, made when asked for."""
    if len(parts) == 1:
        return parts[0]
    return (each for part in parts for each in part)


def _repeated(
    first_id: int, line: int, count: int, start: int, step: int, command: bytes
) -> Iterator[Task]:
    for number in range(count):
        yield Task(first_id + number, line, start + number * step, command)


_repeat_match: Callable[[bytes], re.Match[bytes] | None] | None = None


def _repeat_numbers(rest: bytes) -> tuple[int, int, int, bytes] | None:
    """Count, start, step and command of a REPEAT, or None where it does not parse."""
    global _repeat_match
    if _repeat_match is None:
        import re

        _repeat_match = re.compile(
            rb" REPEAT\s+([0-9]+)(?:\s+start\s+([0-9]+))?(?:\s+step\s+([0-9]+))?(?: (.+))?\s*$",
            re.IGNORECASE,
        ).match
    match = _repeat_match(rest)
    if match is None:
        return None
    numbers = match.group(1), match.group(2) or b"0", match.group(3) or b"1"
    if any(len(number.lstrip(b"0")) > _NUMBER_DIGITS for number in numbers):
        return None  # int() would refuse thousands of digits with an error
    count, start, step = map(int, numbers)
    if count >= _NUMBER_END or start + count * step >= _NUMBER_END:
        return None
    return count, start, step, match.group(4) or b""


def _is_odd_barrier(checks: bool, after: bytes) -> bool:
    """Whether what follows BARRIER (or BARRIER CHECK) was hardly meant as it is read.

    Blanks at the very end are not odd: the line is read as the one it looks like.
    """
    if not after.strip():
        return False
    if not after.startswith(b" "):
        return True
    word = after.split(None, 1)[0]
    return not checks and word[:5].upper() == CHECK and (word[5:].isalpha() or len(word) == 5)


def _should_read(piece: bytes, at_head: bool) -> bytes:
    """The directive that a piece was probably meant to be, or nothing."""
    rest = piece.lstrip()[9:].lstrip()
    keyword, tail = _keyword(rest)
    meant = _MEANT[keyword](tail) if keyword else None
    if meant is None:
        return b""
    directive = MARK + b" " + keyword + meant
    reader = TaskReader()
    reader._at_head = at_head
    first = next(iter(reader.read_piece(directive, 1)), None)
    return b"" if isinstance(first, Suspicion) else directive


def _keyword(rest: bytes) -> tuple[bytes, bytes]:
    """The keyword that a text begins with, or is a misspelling of, and what follows it."""
    for keyword in KEYWORDS:
        if rest[: len(keyword)].upper() == keyword:
            return keyword, rest[len(keyword) :]
    from difflib import get_close_matches  # rare and slow to import: only to help a user

    word = rest.split(None, 1)[0] if rest else b""
    names = [keyword.decode() for keyword in KEYWORDS]
    near = get_close_matches(word[:20].decode("latin-1").upper(), names, n=1, cutoff=0.75)
    return (near[0].encode(), rest[len(word) :]) if near else (b"", b"")


def _meant_text(tail: bytes) -> bytes | None:
    """What follows PREFIX or SUFFIX: one blank, then the text to the byte."""
    return b" " + (tail[1:] if tail[:1].isspace() else tail)


def _meant_per_engine(tail: bytes) -> bytes | None:
    words = tail.split(None, 1)
    if len(words) != 2 or words[0].upper() not in (b"START", b"STOP"):
        return None
    return b" " + words[0].upper() + b" " + words[1]


def _meant_barrier(tail: bytes) -> bytes | None:
    words = tail.split(None, 1)
    if words and words[0][:5].upper() == CHECK:
        words[0] = CHECK
    return b"".join(b" " + word for word in words)


def _meant_repeat(tail: bytes) -> bytes | None:
    """A count, start and step in any order and spacing, then the command."""
    import re

    match = re.match(
        rb"\s*([0-9]+)((?:\s*(?:start|step)\s*[0-9]+(?=\s|$))*)(?:\s(.*))?$", tail, re.IGNORECASE
    )
    if match is None:
        return None
    given = re.findall(rb"(start|step)\s*([0-9]+)", match.group(2).lower())
    if len({word for word, _ in given}) != len(given):
        return None
    meant = b" " + match.group(1)
    for word, number in sorted(given):
        meant += b" " + word + b" " + number
    return meant + b" " + match.group(3) if match.group(3) else meant


_MEANT: dict[bytes, Callable[[bytes], bytes | None]] = {
    b"PREFIX": _meant_text,
    b"SUFFIX": _meant_text,
    b"PERENGINE": _meant_per_engine,
    b"BARRIER": _meant_barrier,
    b"REPEAT": _meant_repeat,
}


def shown(text: bytes) -> str:
    """A line of a list as a screen can bear it: one line, bounded, nothing that acts."""
    chars = text[: 4 * SHOWN_TEXT].decode("utf-8", "backslashreplace")
    printable = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in chars)
    if len(printable) > SHOWN_TEXT or len(text) > 4 * SHOWN_TEXT:
        return printable[:SHOWN_TEXT] + "..."
    return printable

"""Earlier runs: their status files, and what they say of each task of a list.

Each file is read once, up to where it ended then: what this run appends to its own file
does not count. Of a row eight bytes are kept; it is read back to be compared and to be
written again. The rules are those of ``core.resume``.
"""

from __future__ import annotations

import os
import stat
from itertools import accumulate, repeat
from operator import add, sub

from overnight.core import resume
from overnight.errors import ResumeRefused
from overnight.formats import statusfile
from overnight.formats.taskfile import shown
from overnight.model.task import NO_REPEAT, DoneBefore, PlainTasks, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_BLOCK = 1 << 18
_WINDOW = 1 << 15
_WINDOW_BEHIND = 1 << 13  # rows stand in order of completion: nearly, not quite, that of ids
MOST_IN_A_ROW = 4096
"""Tasks that were done, taken as one: so many cost less than a millisecond."""

MOST_ROW_BYTES = 1 << 19
"""Of rows that are written again, taken as one."""

_ID_DIGITS = 18
_TAB = ord("\t")
_COMMAND = 14  # index of the last field; so many TABs stand before it
_NOTHING_RUN = "nothing was run"


class Earlier:
    """What earlier runs recorded, against which the tasks of a list are judged."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        retry: bool = False,
        force: bool = False,
        by_text: bool = False,
        own: str | None = None,
        refuses_foreign: bool = True,
    ) -> None:
        """Read the files.

        Args:
            paths: Status files, the earliest run first.
            retry: Only a success counts: what failed runs again.
            force: Go by the task id alone.
            by_text: Go by the text alone.
            own: The status file that this run goes on in, where it is one of ``paths``.
            refuses_foreign: A file with something in it, but no row, is most likely the
                wrong file; disBatch takes it for a run that did nothing.

        Raises:
            ResumeRefused: A file cannot be read or is no status file.
        """
        self._retry = retry
        self._force = force
        self._refuses_foreign = refuses_foreign
        self._by_id = resume.RowsById()
        self._by_text = resume.RowsByText() if by_text else None
        self._expected: tuple[int, int] | None = None
        self._is_checked = False  # the whole list was compared by id
        self._unfinished: dict[int, int] = {}  # by id: rows that lack their LF, whole or not
        self._files: list[_StatusFile] = []
        ordered, self._has_own = _own_first(paths, own)
        if len(ordered) > resume.MOST_FILES:
            raise ResumeRefused(f"at most {resume.MOST_FILES} status files can be read at once")
        for number, path in enumerate(ordered):
            self._files.append(_StatusFile(path))
            self._load(number)
        if self._by_text is not None:
            self._by_text.sort()

    @property
    def row_count(self) -> int:
        """Tasks of earlier runs that have a whole row that counts."""
        return len(self._by_id if self._by_text is None else self._by_text)

    def sizes(self) -> list[tuple[str, int]]:
        """The files, and how much of each was there when it was read."""
        return [(file.path, file.size) for file in self._files]

    def check(self, items: Iterable[object]) -> None:
        """Compare a whole list before anything runs. 0.2 us a plain task that is as it was.

        By text nothing can be wrong; then each row is kept for the task that has its id
        and text, and ``matches`` knows what will be found.

        Args:
            items: What the list holds, in its order (``TaskReader.read_blocks``); what is
                no task is passed over.

        Raises:
            ResumeRefused: A task is not what it was. It is named with both texts.
        """
        if self._by_text is not None:
            for task in _tasks_of(items):
                self._by_text.claim(task.id, _text_hash(task), self._says(task))
            self._expected = self._by_text.expected()
            return
        if self._force:
            return
        for task in _tasks_of(items, self._unlike):
            text = task.command
            if task.repeat != NO_REPEAT:
                text = b"%d\t%b" % (task.repeat, text)
            if not self._by_id.has_text(task.id, text):
                self._place_by_id(task)
        self._by_id.forget_texts()
        self._is_checked = True

    def _unlike(self, plain: PlainTasks) -> Sequence[int]:
        """Which of these tasks are not known to have their row's text; their indices."""
        return self._by_id.without_text(plain.id, plain.commands)

    def judge(self, task: Task) -> Task | DoneBefore:
        """Say whether a task runs or was done before.

        Raises:
            ResumeRefused: It is not what it was. ``kept`` says that nothing was run; a
                caller who has run something says otherwise.
        """
        place = self._place_by_id(task) if self._by_text is None else self._place_by_text(task)
        if place == resume.NO_PLACE or (self._retry and not resume.is_success(place)):
            return task
        stands = self._stands_in_own(place)
        if stands and self._by_text is None and resume.is_success(place):
            return DoneBefore(task.id, task.line, 1, 0, b"")
        row = self._row_at(place)
        _, task_id, _, _, _, _, code, _ = row.split(b"\t", 7)
        rows = b""
        if int(task_id) != task.id:
            rows = statusfile.skipped_row(row, task) + b"\n"
        elif not stands:
            rows = statusfile.skipped_row(row) + b"\n"
        return DoneBefore(task.id, task.line, 1, int(code), rows)

    def judge_plain(
        self, plain: PlainTasks, may_have_changed: bool = False
    ) -> Iterator[Task | DoneBefore]:
        """``judge`` for tasks of plain lines; those that succeeded before are one item.

        Args:
            plain: The tasks.
            may_have_changed: Since they were checked.

        Raises:
            ResumeRefused: As ``judge`` does, when its turn has come.
        """
        count = len(plain.commands)
        singly = iter(self._judged_singly(plain, may_have_changed))
        next_single = next(singly, count)
        at = 0
        while at < count:
            if at < next_single and (
                places := self._by_id.done_from(plain.id + at, min(next_single - at, MOST_IN_A_ROW))
            ):
                done, rows = self._rows_again(places)
                yield DoneBefore(plain.id + at, plain.line + at, done, 0, rows)
                at += done
                continue
            yield self.judge(plain.task(at))
            if at == next_single:
                next_single = next(singly, count)
            at += 1

    def _judged_singly(self, plain: PlainTasks, may_have_changed: bool) -> Sequence[int]:
        """Which of these tasks have to be looked at one by one; their indices in order."""
        if self._by_text is not None or self._unfinished or (may_have_changed and self._is_checked):
            return range(len(plain.commands))
        return () if self._force or self._is_checked else self._unlike(plain)

    def _rows_again(self, places: Sequence[int]) -> tuple[int, bytes]:
        """What is to be written for rows at the first of these places, and for how many of them.

        About ``MOST_ROW_BYTES`` at a time: they are kept until they are durable.
        """
        if self._has_own and resume.are_in_first_file(places):
            return len(places), b""
        number, offsets = next(resume.by_file(places))
        if number == 0 and self._has_own:
            return len(offsets), b""
        rows = self._files[number].rows_at(offsets)
        return len(rows), b"".join([statusfile.skipped_row(row) + b"\n" for row in rows])

    def matches(self) -> str:
        """What going by the text alone finds, in one sentence; empty where that is off."""
        if self._by_text is None:
            return ""
        kept, moved = self._expected or (self._by_text.kept, self._by_text.moved)
        left = len(self._by_text) - kept - moved
        return (
            f"by text: {kept + moved} tasks were done before, {moved} of them under another "
            f"number; {left} tasks of earlier runs are not in this list"
        )

    def close(self) -> None:
        """Give the files back; nothing can be judged any more."""
        for file in self._files:
            file.close()

    def _load(self, number: int) -> None:
        """Take notice of every row that counts in a file. About 1 us a row."""
        file = self._files[number]
        bases = _Bases(lambda flags, code: self._base(number, flags, code))
        offset = 0
        for lines in file.lines():
            if self._by_text is not None or not self._load_alike(lines, offset, bases):
                self._load_singly(lines, offset, bases)
            offset += sum(map(len, lines)) + len(lines)
        unfinished = statusfile.parse_row(file.unfinished)
        if unfinished is not None:
            base = self._base(number, unfinished.fields[0], unfinished.fields[6])
            if base >= 0:
                self._unfinished.setdefault(unfinished.id, base + offset)
        if self._refuses_foreign:
            file.refuse_if_foreign()

    def _load_alike(self, lines: Sequence[bytes], offset: int, bases: _Bases) -> bool:
        """Note the rows of lines of which each has one that counts, and no TAB in its command.

        Returns:
            Whether they are such lines; if not, nothing was noted.
        """
        if set(map(bytes.count, lines, repeat(b"\t"))) != {_COMMAND}:
            return False
        fields = b"\t".join(lines).split(b"\t")
        flags, ids, repeats, codes, texts = (
            fields[column :: _COMMAND + 1] for column in (0, 1, 3, 6, _COMMAND)
        )
        if not all(map(bytes.isdigit, ids)) or max(map(len, ids)) > _ID_DIGITS:
            return False
        keys = set(zip(flags, codes, strict=True))
        if min(map(bases.__getitem__, keys)) < 0:
            return False
        base = bases[keys.pop()]
        starts = accumulate(map(len, lines), initial=offset)
        places = map(add, starts, range(base, base + len(lines)))  # of each LF before it too
        if keys:  # there are others: failures, rows of a resume
            others = map(bases.__getitem__, zip(flags, codes, strict=True))
            places = map(add, places, map(sub, others, repeat(base)))
        if set(repeats) != {b"-1"}:
            texts = list(map(_with_repeat, repeats, texts))
        self._by_id.note_all(list(map(int, ids)), places, map(hash, texts))
        return True

    def _load_singly(self, lines: Sequence[bytes], offset: int, bases: _Bases) -> None:
        note = self._by_id.note if self._by_text is None else self._by_text.note
        for line in lines:
            fields = line.split(b"\t", _COMMAND)
            if len(fields) > _COMMAND:
                base = bases[fields[0], fields[6]]
                task_id = fields[1]
                if base >= 0 and task_id.isdigit() and len(task_id) <= _ID_DIGITS:
                    text = _with_repeat(fields[3], fields[_COMMAND])
                    note(int(task_id), base + offset, hash(text))
            offset += len(line) + 1

    def _base(self, number: int, flags: bytes, code: bytes) -> int:
        """``resume.base_of`` rows with such flags and exit code; -1 where they do not count."""
        file = self._files[number]
        kind = statusfile.KINDS.get(flags)
        if kind is None or not statusfile.is_integer(code):
            file.is_known = file.is_known or flags == statusfile.COLUMNS[0].encode()
            return -1
        file.is_known = True
        base = resume.base_of(kind, int(code), number)
        if base is None or (
            self._by_text is not None and self._retry and not resume.is_success(base)
        ):
            return -1
        return base

    def _place_by_id(self, task: Task) -> int:
        """Where the row of a task's id stands that counts; its text is the task's."""
        place = self._by_id.find(task.id)
        if self._unfinished:
            place = self._place_or_unfinished(task, place)
        if (
            place == resume.NO_PLACE
            or self._force
            or (self._retry and not resume.is_success(place))
        ):
            return place
        number, offset = resume.file_and_offset(place)
        if not self._files[number].ends_in(offset, task.command):
            field = _command_of(self._row_at(place))
            if not statusfile.is_field_of(field, task.command):
                raise self._mismatch(task, place, field)
        return place

    def _place_or_unfinished(self, task: Task, place: int) -> int:
        """Let a last row without its LF count too, unless it was cut inside the command."""
        unfinished = self._unfinished.get(task.id)
        if unfinished is None or place < unfinished:
            return place
        field = _command_of(self._row_at(unfinished))
        return place if statusfile.is_torn_field_of(field, task.command) else unfinished

    def _stands_in_own(self, place: int) -> bool:
        """Whether a row need not be written again.

        One that lacks its LF must be: it will be closed as a torn row is.
        """
        if not self._has_own or resume.file_and_offset(place)[0] != 0:
            return False
        return not self._unfinished or place not in self._unfinished.values()

    def _place_by_text(self, task: Task) -> int:
        assert self._by_text is not None
        says = self._says(task)
        place = self._by_text.take(task.id, _text_hash(task), says)
        unfinished = self._unfinished.get(task.id)
        if place == resume.NO_PLACE and unfinished is not None and says(unfinished):
            return unfinished
        return place

    def _says(self, task: Task) -> Callable[[int], bool]:
        """Whether the row at a place has the text (and repeat index) of a task."""

        def is_row_of(place: int) -> bool:
            fields = self._row_at(place).split(b"\t", _COMMAND)
            is_repeat = fields[3] == b"%d" % task.repeat
            return is_repeat and statusfile.is_field_of(fields[_COMMAND], task.command)

        return is_row_of

    def _row_at(self, place: int) -> bytes:
        number, offset = resume.file_and_offset(place)
        return self._files[number].row_at(offset)

    def _mismatch(self, task: Task, place: int, field: bytes) -> ResumeRefused:
        number, offset = resume.file_and_offset(place)
        file = self._files[number]
        where = f"{file.path}, line {file.line_number(offset)}"
        return resume.mismatch(where, task.id, shown(field), shown(task.command))


class _Bases(dict[tuple[bytes, bytes], int]):
    """``Earlier._base`` by flags and exit code, each worked out once."""

    def __init__(self, base: Callable[[bytes, bytes], int]) -> None:
        super().__init__()
        self._base = base

    def __missing__(self, key: tuple[bytes, bytes]) -> int:
        self[key] = base = self._base(*key)
        return base


class _StatusFile:
    """A status file of an earlier run, open to be read.

    Attributes:
        path: As the user named it.
        size: When it was opened.
        is_known: Whether a row or a header has been seen in it.
        unfinished: What stands behind the last LF; known when ``lines`` has come to its end.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_known = False
        self.unfinished = b""
        self._first_line = (0, b"")  # the first that is not empty
        self._window = b""
        self._window_at = 0
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise _unreadable(path, error) from error
        status = os.fstat(self._fd)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            self.close()
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise _refused(path, f"is {kind}, so no rows can be read from it")

    def close(self) -> None:
        os.close(self._fd)

    def lines(self) -> Iterator[list[bytes]]:
        """The lines that end in LF, without it, a block's at a time; none is a torn row."""
        unfinished: list[bytes] = []
        at = count = 0
        while block := self._read(at, _BLOCK):
            at += len(block)
            end = block.rfind(b"\n") + 1
            if not end:
                unfinished.append(block)
                continue
            whole = b"".join((*unfinished, block[:end]))
            unfinished = [block[end:]]
            lines = whole.split(b"\n")
            lines.pop()
            if statusfile.TORN + b"\n" in whole:
                lines = [_no_row(line) if _is_torn(line) else line for line in lines]
            self._keep_first(lines, count)
            count += len(lines)
            yield lines
        self.unfinished = b"".join(unfinished)

    def refuse_if_foreign(self) -> None:
        """Refuse the file if there is something in it, but nothing of a status file."""
        if self.is_known:
            return
        number, text = self._first_line
        if not number:
            if statusfile.may_become_row(self.unfinished):
                return
            number, text = 1, self.unfinished
        raise _refused(f"{self.path}, line {number}", f'"{shown(text)}" is no row of a status file')

    def row_at(self, offset: int) -> bytes:
        """The row that begins at an offset, without its end."""
        start, end = self._find(offset)
        return self._window[start:end].rstrip(b"\r")

    def rows_at(self, offsets: Sequence[int]) -> list[bytes]:
        """``row_at`` for the first of these, about ``MOST_ROW_BYTES``; mostly they stand near."""
        first, last = min(offsets), max(offsets)
        if last - first > MOST_ROW_BYTES:
            return self._far_rows_at(offsets)
        block = self._read(first, last - first) + self.row_at(last) + b"\n"
        rows = []
        for offset in offsets:
            begin = offset - first
            rows.append(block[begin : block.index(b"\n", begin)].rstrip(b"\r"))
        return rows

    def _far_rows_at(self, offsets: Sequence[int]) -> list[bytes]:
        rows: list[bytes] = []
        size = 0
        for offset in offsets:
            rows.append(self.row_at(offset))
            size += len(rows[-1])
            if size >= MOST_ROW_BYTES:
                break
        return rows

    def ends_in(self, offset: int, command: bytes) -> bool:
        """Whether the row at an offset has this command, byte for byte, as its last field."""
        window = self._window
        start = offset - self._window_at
        end = window.find(b"\n", start) if start >= 0 else -1
        if end < 0:
            start, end = self._find(offset)
            window = self._window
        begin = end - len(command)
        return (
            window.startswith(command, begin)
            and window.count(b"\t", start, begin) == _COMMAND
            and window[begin - 1] == _TAB
        )

    def line_number(self, offset: int) -> int:
        """Number of the line that begins at an offset, from 1."""
        number = 1
        for at in range(0, offset, _BLOCK):
            number += self._read(at, min(_BLOCK, offset - at)).count(b"\n")
        return number

    def _find(self, offset: int) -> tuple[int, int]:
        """Where in the window a row begins and ends; the window is moved if need be."""
        start = offset - self._window_at
        if start >= 0:
            end = self._window.find(b"\n", start)
            if end >= 0:
                return start, end
        return self._move_window(offset)

    def _move_window(self, offset: int) -> tuple[int, int]:
        self._window_at = max(0, offset - _WINDOW_BEHIND)
        start = offset - self._window_at
        length = _WINDOW
        while True:
            self._window = window = self._read(self._window_at, length)
            end = window.find(b"\n", start)
            if end >= 0:
                return start, end
            if len(window) < length:
                break
            length *= 4
        if start >= len(window):
            raise _refused(self.path, "became shorter while it was read")
        return start, len(window)

    def _read(self, at: int, length: int) -> bytes:
        """Bytes of the file as it was when it was opened."""
        try:
            return os.pread(self._fd, min(length, max(0, self.size - at)), at)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _keep_first(self, lines: list[bytes], count: int) -> None:
        if not self._first_line[0]:
            for number, line in enumerate(lines, count + 1):
                if line.strip():
                    self._first_line = (number, line)
                    return


def _is_torn(line: bytes) -> bool:
    return line.endswith(statusfile.TORN)


def _no_row(line: bytes) -> bytes:
    return b" " * len(line)


def _command_of(row: bytes) -> bytes:
    return row.split(b"\t", _COMMAND)[_COMMAND]


def _tasks_of(
    items: Iterable[object],
    chosen: Callable[[PlainTasks], Iterable[int]] = lambda plain: range(len(plain.commands)),
) -> Iterator[Task]:
    """The tasks among these items; of plain ones those with the indices chosen."""
    for item in items:
        if type(item) is PlainTasks:
            yield from map(item.task, chosen(item))
        elif type(item) is Task:
            yield item


def _with_repeat(repeat: bytes, text: bytes) -> bytes:
    return text if repeat == b"-1" else repeat + b"\t" + text


def _text_hash(task: Task) -> int:
    field = statusfile.command_field(task.command)
    return hash(field if task.repeat == NO_REPEAT else b"%d\t%b" % (task.repeat, field))


def _own_first(paths: Sequence[str], own: str | None) -> tuple[list[str], bool]:
    """The paths with the run's own file before all others, and whether it is among them."""
    if own is not None:
        for path in paths:
            if os.path.realpath(path) == os.path.realpath(own):
                return [path, *(other for other in paths if other != path)], True
    return list(paths), False


def _unreadable(path: str, error: OSError) -> ResumeRefused:
    return _refused(path, f"cannot be read: {error.strerror}")


def _refused(where: str, what: str) -> ResumeRefused:
    return ResumeRefused(
        what,
        where=where,
        kept=_NOTHING_RUN,
        do="give -r the status file (..._status.txt) of an earlier run of this list",
    )

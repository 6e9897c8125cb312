"""Resume: which rows of earlier runs count, and which task each of them settles.

The rules:

* Rows of tasks count, and rows of tasks that an earlier resume skipped (so the last file
  alone is enough to resume a resume). The row of a task that was cut off or reported late
  counts only if it was a success. Barriers and per-engine commands always run again.
* Of several rows for one task a success outranks any failure. Among successes the earliest
  counts; among failures the one with the lowest exit code, the earliest among equals, as
  in disBatch. Earlier is: in the file named first, and further up in it. The file that
  the run goes on in comes before all others, so no row is written into it twice.
* A task is known by its id and its text; line and repeat index may have moved. A task
  whose row has another text is a mismatch, unless the user goes by the id alone.
* By text alone (for edited lists) a task takes the row of its own id if the text is the
  same, else any row with its text that no other task has a better claim to. Tasks of a
  REPEAT share their text, so the repeat index belongs to it here.

A row is kept as eight bytes, its *place*: rank, file and offset. Of two places the lesser
counts. What a row says is read back when it is asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import groupby
from operator import itemgetter

from overnight.errors import ResumeRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

NO_PLACE = (1 << 64) - 1
"""Greater than every place, so that any row counts more than none."""

MOST_FILES = 1 << 12

_SUCCESS = 0
_FAILURES = 301  # rank of a failure is this plus its code; codes beyond the bounds rank there
_LOWEST_CODE = -300
_HIGHEST_CODE = 700
_FIRST_FAILURE = 1 << 54  # places of successes are less
_SECOND_FILE = 1 << 42
_SMALL_TABLE = 1 << 17
_MANY_FAR = 1 << 16
_IDS_PER_ROW = 8

_FREE, _CLAIMED, _TAKEN = 0, 1, 2


def base_of(kind: str, code: int, file: int) -> int | None:
    """What the places of such rows have in common: each is this plus its offset.

    Args:
        kind: N, S, Z, P, B or C, as the flags in the status file say.
        code: The exit code in the row.
        file: Number of the file.

    Returns:
        The place of such a row at the beginning of the file, or None where rows of this
        kind and code do not count.

    >>> base_of("Z", 0, 3) + 70 < base_of("N", 1, 0)
    True
    """
    if code == 0:
        return _SUCCESS << 54 | file << 42 if kind in "NSZ" else None
    if kind not in "NS":
        return None
    return _FAILURES + max(_LOWEST_CODE, min(code, _HIGHEST_CODE)) << 54 | file << 42


def is_success(place: int) -> bool:
    """Whether the row at a place is of a task that ended with 0."""
    return place >> 54 == _SUCCESS


def file_and_offset(place: int) -> tuple[int, int]:
    """Number of the file that a place is in, and where the row begins there."""
    return place >> 42 & 0xFFF, place & 0x3FFFFFFFFFF


def are_in_first_file(successes: Sequence[int]) -> bool:
    """Whether all these places of successes, at least one, are in the file with number 0."""
    return max(successes) < _SECOND_FILE


def by_file(places: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Number of the file and offsets there, of places that follow each other."""
    for number, group in groupby(map(file_and_offset, places), itemgetter(0)):
        yield number, [offset for _, offset in group]


class RowsById:
    """For each task id the place of the one old row that counts: eight bytes an id.

    Until ``forget_texts`` another eight are a hash of its text. With it a list is compared
    three times as fast as by reading each row back.
    """

    __slots__ = ("_far", "_places", "_texts")

    def __init__(self) -> None:
        self._places = array("Q")  # by id
        self._texts = array("q")  # by id
        self._far: dict[int, int] = {}  # few rows with great ids must not make a huge table

    def __len__(self) -> int:
        """How many task ids have a row that counts."""
        return len(self._places) - self._places.count(NO_PLACE) + len(self._far)

    def note(self, task_id: int, place: int, text: int) -> None:
        """Take notice of a row; of two for one task the one that counts stays."""
        try:
            old = self._places[task_id]
        except IndexError:
            if not self._has_grown(task_id):
                self._note_far(task_id, place)
                return
            old = self._places[task_id]  # it may have been kept as one too far until now
        if place < old:
            self._places[task_id] = place
            self._texts[task_id] = text

    def note_all(
        self, task_ids: Sequence[int], places: Iterable[int], texts: Iterable[int]
    ) -> None:
        """``note`` for many rows, in a quarter of the time."""
        last = max(task_ids)
        if last >= len(self._places) and not self._has_grown(last):
            for row in zip(task_ids, places, texts, strict=True):
                self.note(*row)
            return
        kept_places, kept_texts = self._places, self._texts
        for task_id, place, text in zip(task_ids, places, texts, strict=True):
            if place < kept_places[task_id]:
                kept_places[task_id] = place
                kept_texts[task_id] = text

    def has_text(self, task_id: int, text: bytes) -> bool:
        """Whether the row of a task is known to have this text; no if there is none."""
        return (
            task_id < len(self._texts)
            and self._texts[task_id] == hash(text)
            and self._places[task_id] != NO_PLACE
        )

    def without_text(self, first_id: int, texts: Sequence[bytes]) -> list[int]:
        """Which of the tasks with ids in a row ``has_text`` says no to; their indices.

        The text of a task that no REPEAT made is never empty, and its hash not that which
        stands for no row.
        """
        hashes = array("q", map(hash, texts))
        known = self._texts[first_id : first_id + len(texts)]
        if known == hashes:
            return []
        known.extend(array("q", [0]) * (len(hashes) - len(known)))
        return [index for index, text in enumerate(hashes) if text != known[index]]

    def forget_texts(self) -> None:
        """Give half of the memory back. From here on nothing can be noted."""
        self._texts = array("q")

    def done_from(self, first_id: int, most: int) -> array[int]:
        """Places of the successes of tasks with ids in a row, up to the first without one."""
        places = self._places
        end, limit = first_id, min(first_id + most, len(places))
        step = 1
        while end < limit and max(places[end : min(end + step, limit)]) < _FIRST_FAILURE:
            end = min(end + step, limit)
            step *= 2
        while end < limit and places[end] < _FIRST_FAILURE:
            end += 1
        return places[first_id:end]

    def find(self, task_id: int) -> int:
        """The place of the row for a task id, or ``NO_PLACE``."""
        if task_id < len(self._places):
            return self._places[task_id]
        return self._far.get(task_id, NO_PLACE)

    def _has_grown(self, task_id: int) -> bool:
        """Make room up to an id, unless it is far beyond all others."""
        length = len(self._places)
        if task_id < _SMALL_TABLE or task_id < 2 * length:
            self._grow(max(task_id, length * 17 // 16))
            return True
        return False

    def _note_far(self, task_id: int, place: int) -> None:
        """Keep a row far beyond the table, and make room when such rows are many."""
        far = self._far
        far[task_id] = min(place, far.get(task_id, place))
        if len(far) % _MANY_FAR == 0 and max(far) < _IDS_PER_ROW * len(far):
            self._grow(max(far))

    def _grow(self, last: int) -> None:
        """Make room up to an id, and take in the rows that were too far before."""
        more = last + 1 - len(self._places)
        self._places.extend(array("Q", [NO_PLACE]) * more)
        self._texts.extend(array("q", [0]) * more)
        for task_id in [far for far in self._far if far <= last]:
            self._places[task_id] = self._far.pop(task_id)


class RowsByText:
    """Old rows by what was run, for lists whose lines have moved.

    17 bytes a row, and about 70 more while they are sorted.

    First all rows are noted, then ``sort`` is called once. A row goes to one task at most.
    Where the whole list can be seen before anything runs, ``claim`` is asked for all its
    tasks first: then no task takes a row from another that has the same id as the row.

    A text is known by a hash, of which half is kept; the caller's ``is_row_of(place)``
    reads a row back and says whether it is of the text that is sought.

    Attributes:
        kept: Tasks that took the row of their own id.
        moved: Tasks that took the row of another id.
    """

    __slots__ = ("_keys", "_next", "_places", "_state", "_wanted", "kept", "moved")

    def __init__(self) -> None:
        self._keys = array("Q")  # half the hash of the text, then half the id
        self._places = array("Q")
        self._state = bytearray()
        self._next: dict[int, int] = {}  # by first row of a text: the first one not given away
        self._wanted: dict[int, int] = {}  # by first row of a text: tasks without a claim
        self.kept = 0
        self.moved = 0

    def __len__(self) -> int:
        """How many tasks of earlier runs have a row that counts."""
        return len(self._keys)

    def note(self, task_id: int, place: int, text: int) -> None:
        """Take notice of a row whose text (and repeat index) has this hash."""
        self._keys.append(_key(text, task_id))
        self._places.append(place)

    def sort(self) -> None:
        """Order all rows noted, and leave the one that counts of those for one task."""
        merged = sorted(
            key << 64 | place for key, place in zip(self._keys, self._places, strict=True)
        )
        self._keys, self._places = array("Q"), array("Q")
        last = -1
        for row in merged:
            key = row >> 64
            if key != last:
                self._keys.append(key)
                self._places.append(row & NO_PLACE)
            last = key
        self._state = bytearray(len(self._keys))

    def claim(self, task_id: int, text: int, is_row_of: Callable[[int], bool]) -> None:
        """Reserve the row of a task's own id and text, if there is one."""
        row = self._row_of(task_id, text, is_row_of)
        if row is not None:
            self._state[row] = _CLAIMED
            return
        first, end = self._rows_of(text)
        if first < end:
            self._wanted[first] = self._wanted.get(first, 0) + 1

    def expected(self) -> tuple[int, int]:
        """How many tasks will take the row of their own id, and how many that of another.

        Known once every task of the list has been asked to ``claim``.
        """
        moved = 0
        for first, tasks in self._wanted.items():
            half = self._keys[first] >> 32
            end = bisect_left(self._keys, half + 1 << 32)
            moved += min(tasks, self._state.count(_FREE, first, end))
        return self._state.count(_CLAIMED), moved

    def take(self, task_id: int, text: int, is_row_of: Callable[[int], bool]) -> int:
        """Give a task the place of the row that settles it, or ``NO_PLACE``."""
        row = self._row_of(task_id, text, is_row_of)
        if row is not None:
            self.kept += 1
            self._state[row] = _TAKEN
            return self._places[row]
        first, end = self._rows_of(text)
        row = self._next.get(first, first)
        while row < end and self._state[row] != _FREE:
            row += 1
        if first < end:
            self._next[first] = row
        for free in range(row, end):
            if self._state[free] == _FREE and is_row_of(self._places[free]):
                self.moved += 1
                self._state[free] = _TAKEN
                return self._places[free]
        return NO_PLACE

    def _row_of(self, task_id: int, text: int, is_row_of: Callable[[int], bool]) -> int | None:
        key = _key(text, task_id)
        row = bisect_left(self._keys, key)
        if row == len(self._keys) or self._keys[row] != key or self._state[row] == _TAKEN:
            return None
        return row if is_row_of(self._places[row]) else None

    def _rows_of(self, text: int) -> tuple[int, int]:
        """Where the rows of a text (of its half hash) begin and end."""
        first = _key(text, 0)
        return bisect_left(self._keys, first), bisect_left(self._keys, first + (1 << 32))


def _key(text: int, task_id: int) -> int:
    return (text & 0xFFFFFFFF) << 32 | task_id & 0xFFFFFFFF


def mismatch(where: str, task_id: int, was: str, now: str) -> ResumeRefused:
    """The error for a task whose old row has another text.

    Args:
        where: File and line of the row.
        task_id: The task.
        was: The command in the row, bounded.
        now: The command in the list, bounded.
    """
    return ResumeRefused(
        f'task {task_id} was "{was}", the list now says "{now}"',
        where=where,
        kept="nothing was run",
        do="resume with the old list, or add --force-resume to go by number alone, "
        "or --by-text to go by text alone",
    )

"""Which lines need no shell: those that bash would hand to exec as they stand.

Bash finds nothing to do in a line of plain words but to look for the program and become
it. Starting the program ourselves gives the same process and saves half its cost. The
rules leave out whatever could make bash do anything else; where they leave out too
much, bash is started and nothing is lost.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

LONGEST = 4096
PLAIN = (
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    b"_./:,+@%=-"
    b" \t"
)
"""Bytes that mean nothing but themselves to bash."""

_NO_COMMAND = (b"-", b"+", b"%")  # first bytes: bash takes an option or a job for it

_CHANGES_BASH = frozenset((
    b"BASH_ENV", b"BASHOPTS", b"SHELLOPTS", b"POSIXLY_CORRECT", b"BASH_COMPAT", b"EXECIGNORE",
))
_CHANGED_BY_BASH = frozenset((
    b"BASHPID", b"BASH_ARGV0", b"BASH_COMMAND", b"BASH_SUBSHELL", b"DIRSTACK", b"EPOCHREALTIME",
    b"EPOCHSECONDS", b"FUNCNAME", b"HISTCMD", b"LINENO", b"PPID", b"RANDOM", b"SECONDS",
    b"SRANDOM",
))  # a caller's variable of such a name has another value in each shell


USUAL_SHELL_WORDS = frozenset((
    b"! . : [ [[ ]] alias bg bind break builtin caller case cd command compgen complete compopt "
    b"continue coproc declare dirs disown do done echo elif else enable esac eval exec exit "
    b"export false fc fg fi for function getopts hash help history if in jobs kill let local "
    b"logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt "
    b"source suspend test then time times trap true type typeset ulimit umask unalias unset "
    b"until wait while { }"
).split())
"""What every bash calls its own: a line that begins with one is no reason to ask bash."""


def plain_words(command: bytes, shell_words: Container[bytes]) -> list[bytes] | None:
    """The words of a line that bash would only hand to exec, or None for any other.

    Args:
        command: The whole line.
        shell_words: Builtins and keywords of the bash in question.

    >>> plain_words(b"sort -k1,1 data/a.txt", {b"echo"})
    [b'sort', b'-k1,1', b'data/a.txt']
    >>> plain_words(b"echo a", {b"echo"}) is plain_words(b"sort a > b", set()) is None
    True
    """
    if len(command) > LONGEST or command.translate(None, PLAIN):
        return None
    words = command.split()
    if not words:
        return None
    first = words[0]
    if first.startswith(_NO_COMMAND) or b"=" in first or first in shell_words:
        return None
    return words


def search_path(environment: Sequence[bytes]) -> list[bytes] | None:
    """Where bash looks for programs, or None where this environment asks for bash itself.

    >>> search_path([b"PATH=/usr/bin:/bin"])
    [b'/usr/bin', b'/bin']
    >>> search_path([b"PATH=/usr/bin:"]) is search_path([b"PATH=/bin", b"BASH_ENV=x"]) is None
    True
    """
    variables = dict(entry.partition(b"=")[::2] for entry in environment)
    if any(map(_matters_to_bash, variables)):
        return None
    folders = variables.get(b"PATH", b"").split(b":")
    return folders if all(folder.startswith(b"/") for folder in folders) else None


def _matters_to_bash(name: bytes) -> bool:
    return (
        name in _CHANGES_BASH or name in _CHANGED_BY_BASH or name.startswith(b"BASH_FUNC_")
    )


def candidates(word: bytes, folders: Sequence[bytes]) -> list[bytes]:
    """The files that bash would try for a command word, in its order and spelling.

    >>> candidates(b"sort", [b"/usr/local/bin/", b"/bin"])
    [b'/usr/local/bin/sort', b'/bin/sort']
    """
    if b"/" in word:
        return [word]
    return [
        folder + word if folder.endswith(b"/") else folder + b"/" + word for folder in folders
    ]

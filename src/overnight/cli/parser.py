"""What is said when a command line does not parse: what is wrong and what to do, no usage text.

Twenty lines of usage push the one line that matters off the screen. ``disBatch`` keeps
them: its scripts and its users know its command line so.
"""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

_UNKNOWN = "unrecognized arguments: "
_BARE_SHUFFLE = "--shuffle=any"  # what ``arguments.parse`` makes of --shuffle without "="


class Parser(argparse.ArgumentParser):
    """A parser whose errors are two lines."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As its base class does; what was given is remembered for a message."""
        self._given = self._given or list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and what to do, and end with status 2."""
        what, do = self._explained(message)
        self.exit(2, error_text(self.prog, what, do))

    def _explained(self, message: str) -> tuple[str, str]:
        if not message.startswith(_UNKNOWN):
            return message, ""
        unknown = message.removeprefix(_UNKNOWN).split()
        for word in unknown:
            if word.startswith("-") and word != "-":
                return f"there is no option {word.partition('=')[0]}", self._meant(word)
        seed = self._seed_as_list()
        if seed:
            return (f"the list is {seed}, and {unknown[0]} is one too many",
                    f"to give --shuffle a seed, write --shuffle={seed}")
        return f"one too many: {' '.join(unknown)}", "quote a name with blanks in it"

    def _meant(self, word: str) -> str:
        from difflib import get_close_matches

        name, equals, _ = word.partition("=")
        known = [option for option in self._option_string_actions if option.startswith("--")]
        near = get_close_matches(name, known, 1)
        return f"did you mean {near[0]}{equals}?" if near else ""

    def _seed_as_list(self) -> str:
        """The number that stands behind --shuffle with a blank, and so was taken for the list."""
        following = zip(self._given, self._given[1:], strict=False)
        return next((value for name, value in following
                     if name == _BARE_SHUFFLE and value.isdecimal()), "")


def error_text(program: str, what: str, do: str) -> str:
    """An error of the command line as it stands on the screen, with its line feed."""
    hint = f"{program} --help lists the options"
    return f"{program}: error: {what}\n  do:    {f'{do}  ({hint})' if do else hint}\n"

"""A runner with very many children."""

from __future__ import annotations

import subprocess

from overnight.guard.kin import Kin

PAGE = 4096
COUNT = PAGE // 4  # a number of four digits and a blank each are more than a page


def test_all_children_are_seen_though_the_kernel_lists_them_a_page_at_a_time() -> None:
    """A list that is taken for whole when it is not makes every end a walk over /proc."""
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(COUNT)]
    try:
        seen = Kin()._children_now()
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
    assert {child.pid for child in children} <= seen

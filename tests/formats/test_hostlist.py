"""Names of hosts. The expansions were compared with scontrol of Slurm 22.05."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import UsageError
from overnight.formats.hostlist import (
    MOST_CORES,
    MOST_HOSTS,
    expand_nodelist,
    parse_ssh_nodes,
    read_ssh_nodes,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-3]", "n1 n2 n3"),
        ("node[001-003]", "node001 node002 node003"),
        ("a[1-2],b3,c[4,6-7]", "a1 a2 b3 c4 c6 c7"),
        ("rack[0-1]node[0-2]", "rack0node0 rack0node1 rack0node2 rack1node0 rack1node1 rack1node2"),
        ("n[1-2][3-4]", "n13 n14 n23 n24"),
        ("n[9-11]", "n9 n10 n11"),
        ("n[09-11]", "n09 n10 n11"),
        ("n[9-011]", "n9 n10 n11"),
        ("n[055-56]", "n055 n056"),
        ("n[1,1]", "n1 n1"),
        ("a,b[1-2],a", "a b1 b2 a"),
        ("[1-2]", "1 2"),
        ("a,,b,", "a b"),
        (" a  b\n", "a b"),
        ("a[1-2] b[3-4]", "a1 a2 b3 b4"),
        ("c457-[011-012]", "c457-011 c457-012"),
        ("n[000000000000000000000001-2]", "n000000000000000000000001 n000000000000000000000002"),
        ("x{1..3}", "x{1..3}"),
        ("", ""),
    ],
)
def test_a_compact_list_stands_for_the_names_that_slurm_prints(text: str, names: str) -> None:
    assert expand_nodelist(text) == names.split()


def test_a_suffix_behind_the_brackets_is_kept() -> None:
    assert expand_nodelist("n[01-2]m[1-2]-eth0") == [
        "n01m1-eth0", "n01m2-eth0", "n02m1-eth0", "n02m2-eth0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "n[3-1]", "n[1-", "n[1-2", "n1-2]", "n]1[", "n[]", "n[1,]", "n[,1]", "n[1,,2]", "n[a-b]",
        "n[a]", "n[1-2-3]", "n[-1]", "n[1-]", "n[1-[2-3]]", "a[1-2,b[3-4]]", "n[1-2:2]",
        "n[0x1-0x3]", "n[ 1 - 2 ]", "n[1, 2]", "n[1-9999999999]", "n[1-65537]", "n[²]", "n[١-٣]",
        "n[" + "1" * 5_000 + "]", "a[1-65536]b[1-65536]", "a[1-65536],b", "n\x00[1-2]", "n\x1b",
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of nodes: ") as refused:
        expand_nodelist(text)
    assert len(str(refused.value)) < 300


def test_the_longest_range_that_slurm_takes_is_taken() -> None:
    assert len(expand_nodelist(f"n[1-{MOST_HOSTS}]")) == MOST_HOSTS


@given(st.text(alphabet="ab19-[], \t", max_size=20))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        names = expand_nodelist(text)
    except ValueError:
        return
    assert all(name and not set(name) & set("[], \t") for name in names)


@given(
    st.text(alphabet="abc-", min_size=1, max_size=5),
    st.integers(0, 500), st.integers(0, 30), st.integers(1, 5),
)  # fmt: skip
def test_a_range_is_every_number_from_its_first_to_its_last(
    prefix: str, first: int, more: int, width: int
) -> None:
    text = f"{prefix}[{first:0{width}d}-{first + more}]"
    assert expand_nodelist(text) == [
        f"{prefix}{number:0{width}d}" for number in range(first, first + more + 1)
    ]


def test_hosts_are_named_with_their_cores() -> None:
    assert parse_ssh_nodes(["a:2,b:3", "c:1"], "here") == {"a": 2, "b": 3, "c": 1}


def test_a_host_named_again_adds_to_its_cores() -> None:
    assert parse_ssh_nodes(["a:8", "b:3,a:8"], "here") == {"a": 16, "b": 3}


def test_localhost_is_this_machine() -> None:
    assert parse_ssh_nodes(["localhost:2,here:3"], "here") == {"here": 5}


def test_blanks_and_empty_items_are_passed_over() -> None:
    assert parse_ssh_nodes([" a:2 , ,b: 3,", ""], "here") == {"a": 2, "b": 3}


def test_the_count_stands_behind_the_last_colon() -> None:
    assert parse_ssh_nodes(["h:8:2,::1:4"], "here") == {"h:8": 2, "::1": 4}


@pytest.mark.parametrize(
    "item",
    [
        "a", "a:", ":3", "a:0", "a:-1", "a:x", "a:1.5", "a:+2", "a:1_0", "a:²", "a:" + "9" * 5_000,
        f"a:{MOST_CORES + 1}", "-oProxyCommand=x:2", "a b:2", "a\tb:2", "a\n:b:2",
    ],
)  # fmt: skip
def test_an_item_that_cannot_be_used_is_refused_by_name(item: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_ssh_nodes(["ok:1", f"fine:2,{item}"], "here")
    assert item[:20] in refused.value.what
    assert refused.value.exit_status == 2


def test_what_the_arguments_say_is_read_before_it_is_judged() -> None:
    assert read_ssh_nodes(["a:0,b:-1"], "here") == {"a": 0, "b": -1}


@given(st.lists(st.text(alphabet="ab:1-, \t\x00", max_size=10), max_size=3))
def test_any_arguments_are_hosts_or_refused(arguments: list[str]) -> None:
    try:
        hosts = parse_ssh_nodes(arguments, "here")
    except UsageError:
        return
    assert all(host and cores >= 1 for host, cores in hosts.items())

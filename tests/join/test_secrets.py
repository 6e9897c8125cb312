"""Where the secret of a run is, and where it is not."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys

import pytest

from overnight.driver.control import control_path
from overnight.driver.secret_file import write_secret
from overnight.errors import LinkBroken
from overnight.guard.private import private_directory
from overnight.net.joinfile import read_join_file
from tests.e2e.kit import until
from tests.join.kit import (
    all_pids,
    began,
    command_of,
    environment_of,
    join,
    listening,
    waits_for,
)

NOBODY = 65534


def secrets_of(stage) -> list[bytes]:
    found = json.loads(stage.read("P_join"))
    return [form for name in ("secret", "watching")
            for form in (found[name].encode(), bytes.fromhex(found[name]))]


def test_the_secret_stands_in_the_join_file_and_nowhere_else(stage):
    stage.write("Tasks", f"env > env.$DISBATCH_TASKID; {waits_for('go')}",
                f"env > env.$DISBATCH_TASKID; {waits_for('go')}")
    live = listening(stage, "-j", "1", "--loglevel", "DEBUG", "--json")
    secrets = secrets_of(stage)
    joined = join(stage, "-n", "1")
    until(lambda: len(began(stage)) == 2, "both tasks run")
    assert stat.S_IMODE(stage.path("P_join").stat().st_mode) == 0o600
    for pid in all_pids():
        try:
            shown = command_of(pid) + environment_of(pid)
        except OSError:
            continue  # it has ended meanwhile
        assert not any(secret in shown for secret in secrets), f"process {pid} shows it"
    stage.write("go")
    assert live.wait().status == 0 and joined.wait().status == 0
    texts = [path.read_bytes() for path in stage.folder.rglob("*") if path.is_file()]
    texts += [live.out.encode(), live.err.encode(), joined.out.encode(), joined.err.encode()]
    assert len(texts) > 8
    assert not any(secret in text for text in texts for secret in secrets)


@pytest.mark.needs("root")
def test_another_user_can_neither_read_it_nor_ask_nor_join(stage):
    for folder in (stage.folder, *stage.folder.parents):
        if folder.stat().st_uid == os.getuid() and str(folder) not in ("/", "/tmp"):
            folder.chmod(0o755)
    stage.write("Tasks", waits_for("go"))
    live = listening(stage, "-j", "1")
    until(lambda: len(began(stage)) == 1, "the task runs")

    def as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, user=NOBODY,
            group=NOBODY, extra_groups=[], cwd=stage.folder,
        )

    assert as_nobody("cat", "P_status.txt").returncode == 0
    for name in ("P_join", "P_dbUtil.sh"):
        assert "Permission denied" in as_nobody("cat", name).stderr
    # Its modules are imported first: another user may not reach this environment at all.
    script = (
        "import os, socket, sys; from overnight.cli import ask, join\n"
        "import overnight.net.dial, overnight.net.joinfile, overnight.net.tls\n"
        "files = join.files_of('P')\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "try: ask.ask(files, {'verb': 'list'})\n"
        "except Exception as error: print(type(error).__name__, error)\n"
        "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
        "except OSError as error: print(error)\n"
    )
    door = control_path(private_directory(), os.path.realpath(stage.path("P")))
    assert os.path.exists(door)
    tried = stage.run([sys.executable, "-c", script, door])
    first, *_, last = tried.out.splitlines()
    assert first.startswith("LinkBroken") and "Permission denied" in first, tried
    assert "Permission denied" in last, tried
    # What is reached over the network is of no use without it.
    port = json.loads(stage.read("P_join"))["loopback_port"]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stranger:
        stranger.sendall(b"x" * 100)
        assert stranger.recv(100)[:1] in (b"", b"\x15")  # hung up on, or an alert of TLS
    stage.write("go")
    assert live.wait().status == 0


def test_a_join_file_that_somebody_else_may_have_written_is_not_believed(tmp_path):
    path = tmp_path / "P_join"
    path.write_text("{}")
    for mode in (0o644, 0o660, 0o604):
        path.chmod(mode)
        with pytest.raises(LinkBroken, match="not yours alone"):
            read_join_file([str(path)])
    path.chmod(0o600)
    with pytest.raises(LinkBroken, match="no join file"):
        read_join_file([str(path)])
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="Too many levels"):
        read_join_file([str(tmp_path / "link")])
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(LinkBroken, match="not yours alone"):
        read_join_file([str(tmp_path / "pipe")])


def test_a_trap_in_the_place_of_a_secret_is_replaced_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "P_join"
    path.symlink_to(victim)
    assert write_secret([str(path)], "secret") == str(path)
    assert (path.read_text(), victim.read_text()) == ("secret", "precious")
    assert not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["P_join", "victim"]


def test_where_no_place_is_safe_it_is_said_for_each(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"nowhere/x.*; .*file/y/join"):
        write_secret([str(tmp_path / "nowhere" / "x"), str(tmp_path / "file/y/join")], "secret")

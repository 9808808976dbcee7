"""Outputs that are no ordinary files, or are not ours to replace: devices, links, modes, owners."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.cli.shared.common import output_text
from spacy_treecrf.corpora import LabelledSequence, write_conll, write_jsonl
from spacy_treecrf.storage import container
from tests.cli.calls import good, refused
from tests.tiny import new, tiny_data

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files")
STATE = {"kind": "test", "values": np.arange(50_000)}  # more than a FIFO holds
SEQUENCES = [LabelledSequence(["a", "b"], {"y": ["L", "M"]})]
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may do that"
)


def save(path: Path) -> None:
    container.save(path, STATE)


def write_text(path: Path) -> None:
    with output_text(path) as file:
        file.write("token\tlabel\n" * 30_000)


def write_columns(path: Path) -> None:
    write_conll(path, SEQUENCES * 20_000, "y")


def write_json(path: Path) -> None:
    write_jsonl(path, SEQUENCES * 5_000)


Write = Callable[[Path], None]
ways = pytest.mark.parametrize("write", [save, write_text, write_columns, write_json])


def content_of(write: Write, folder: Path) -> bytes:
    """What a way of writing writes to an ordinary file."""
    place = folder / "ordinary"
    place.mkdir()
    write(place / "file")
    assert os.listdir(place) == ["file"]
    return (place / "file").read_bytes()


@contextlib.contextmanager
def read_in_background(fifo: Path) -> Iterator[list[bytes]]:
    """Someone who reads a FIFO to its end; the list gets all that was read."""
    got: list[bytes] = []
    number = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # which does not wait for a writer

    def read() -> None:
        select.select([number], [], [], 60)  # until someone has written
        os.set_blocking(number, True)
        with os.fdopen(number, "rb") as file:
            got.append(file.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    yield got
    reader.join(60)


@ways
@pytest.mark.parametrize("linked", [False, True])
def test_a_fifo_stays_and_its_reader_gets_everything(
    write: Write, linked: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    fifo = path = folder / "fifo"
    os.mkfifo(fifo)
    if linked:
        path = folder / "link"
        path.symlink_to("fifo")
    names = sorted(os.listdir(folder))
    with read_in_background(fifo) as got:
        write(path)
    assert got == [content_of(write, tmp_path)]
    assert stat.S_ISFIFO(os.lstat(fifo).st_mode)
    assert sorted(os.listdir(folder)) == names


@ways
def test_a_fifo_that_nobody_reads_is_refused_without_waiting(write: Write, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ValueError, match=r"^treecrf: cannot .*fifo': nobody reads from it; start"):
        write(fifo)
    assert stat.S_ISFIFO(os.lstat(fifo).st_mode)
    assert os.listdir(tmp_path) == ["fifo"]


def make_device(path: Path, kind: int, major: int, minor: int) -> None:
    try:
        os.mknod(path, kind | 0o666, os.makedev(major, minor))
        with path.open("rb"):
            pass
    except OSError:
        pytest.skip("this machine lets nobody make devices here")


@as_root
@ways
def test_a_character_device_is_written_to_and_stays(write: Write, tmp_path: Path) -> None:
    null, full = tmp_path / "null", tmp_path / "full"
    make_device(null, stat.S_IFCHR, 1, 3)
    make_device(full, stat.S_IFCHR, 1, 7)
    write(null)
    with pytest.raises(ValueError, match=r"^treecrf: cannot .*full': No space left on device"):
        write(full)
    assert all(stat.S_ISCHR(os.lstat(path).st_mode) for path in (null, full))
    assert sorted(os.listdir(tmp_path)) == ["full", "null"]


@as_root
@ways
def test_a_block_device_is_refused(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "disk"
    try:  # a loop device far beyond those that exist: nothing is behind it
        os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(7, 250))
    except OSError:
        pytest.skip("this machine lets nobody make devices here")
    with pytest.raises(ValueError, match=r"^treecrf: cannot .*disk': it is a block device"):
        write(path)
    assert stat.S_ISBLK(os.lstat(path).st_mode)
    assert os.listdir(tmp_path) == ["disk"]


@ways
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666, 0o755], ids=oct)
def test_a_replaced_file_keeps_its_mode(write: Write, mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write(path)
    assert path.stat().st_size > 3
    assert stat.S_IMODE(path.stat().st_mode) == mode


@ways
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002], ids=oct)
def test_a_new_file_has_the_mode_that_the_user_asks_for(
    write: Write, mask: int, tmp_path: Path
) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


@as_root
@ways
def test_a_replaced_file_keeps_its_owner_and_group(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 1234, 5678)
    path.chmod(0o2640)
    write(path)
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 5678, 0o2640)


@as_root
@ways
def test_a_file_whose_owner_could_not_stay_is_refused(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o666)
    os.chown(path, 1234, os.getegid())
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(ValueError, match=r"^treecrf: cannot .*file': its owner or group would"):
        write(path)
    assert path.read_bytes() == b"old"


@ways
@pytest.mark.parametrize("mode", [0o444, 0o400, 0o555], ids=oct)
def test_a_read_only_file_is_refused_also_from_root(
    write: Write, mode: int, tmp_path: Path
) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(mode)
    link.symlink_to(path)
    for name in (path, link):
        with pytest.raises(ValueError, match=r"^treecrf: cannot .*': it is read-only; name"):
            write(name)
    assert path.read_bytes() == b"old"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@ways
def test_links_stay_and_lead_to_the_new_content(write: Write, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    file, link, first = tmp_path / "models" / "file", tmp_path / "link", tmp_path / "first"
    link.symlink_to("models/file")  # which is not there yet
    first.symlink_to(link)
    for path in (link, first, first):
        write(path)
        assert os.readlink(link) == "models/file"
        assert os.readlink(first) == str(link)
        assert not file.is_symlink()
    assert file.read_bytes() == content_of(write, tmp_path)
    assert os.listdir(tmp_path / "models") == ["file"]


@ways
def test_links_that_lead_nowhere_are_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("absent/file")
    with pytest.raises(ValueError, match=r"^treecrf: cannot .*loop'"):
        write(tmp_path / "loop")
    with pytest.raises(ValueError, match=r"^treecrf: cannot .*absent' does not exist; create"):
        write(tmp_path / "lost")
    assert sorted(os.listdir(tmp_path)) == ["loop", "lost"]


def test_commands_refuse_a_read_only_output_before_they_work(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "output.png"
    path.write_bytes(b"old")
    path.chmod(0o444)
    model, data = shared / "good.treecrf", shared / "test.conll"
    calls: list[list[Any]] = [
        ["tag", model, data, "-o", path],
        ["evaluate", model, data, "-o", path],
        ["plot", model, "-o", path],
        ["train", data, "-o", path],
        ["average", model, shared / "weak.treecrf", "-o", path],
    ]
    for call in calls:
        assert "is read-only" in refused(*call, "--force")
    assert path.read_bytes() == b"old"
    path.chmod(0o644)
    path.write_bytes(model.read_bytes())
    path.chmod(0o444)
    assert "is read-only" in refused("train", data, "-o", path, "--resume")


def test_tagging_writes_to_a_device_without_force(shared: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with read_in_background(fifo) as got:
        good("tag", shared / "good.treecrf", shared / "test.conll", "-o", fifo)
    assert [text.decode() for text in got] == [
        good("tag", shared / "good.treecrf", shared / "test.conll")
    ]


PATHS: list[Any] = [None, b"x", 3, 1.5, ["a"], {1}, "", "a\0b", "\ud800"]


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_what_is_no_path_is_refused(path: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    model = new().fit(*tiny_data())
    with pytest.raises(ValueError, match=r"^treecrf: cannot save the model file"):
        model.save(path)
    with pytest.raises(ValueError, match=r"^treecrf: cannot read the model file"):
        BoostedCRF.load(path)
    with pytest.raises(ValueError, match=r"^treecrf: cannot save the model file"):
        container.save(path, STATE)
    assert os.listdir(tmp_path) == []

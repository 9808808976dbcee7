"""Writing of files that users name: all or nothing, and without harm to what is there.

A file is written beside its target under a name of its own and renamed in the end, so that the
target holds the old content or the new one whatever happens. The name tells the target, and the
writer holds a lock on the file as long as it lives: so the next writer of the target can remove
what a killed one has left, and never what another one is still writing.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows; there, nothing is removed that a killed writer has left
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".tmp"
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
STDIN = "-"


def as_path(path: object, action: str) -> Path:
    """The path that a user gave; what can be no path is refused.

    action: What was to be done, for the message, as in "read the model file".
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise ValueError(
            f"treecrf: cannot {action}: expected a path as a str or a Path, found a value of type "
            f"{type(path).__name__}"
        )
    try:
        possible = bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError(f"treecrf: cannot {action} {text!r}: no file has such a name; correct it")
    return Path(text)


def check_target(path: Path, action: str = "write") -> os.stat_result | None:
    """Refuse a path that `replacing` would not write to; returns the status of what is there."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise ValueError(
                f"treecrf: cannot {action} {str(path)!r}: the folder {folder!r} does not exist; "
                "create it first"
            ) from None
        return None
    except OSError as error:
        raise _refused(path, action, error) from error
    reason = _reason_against(path, status)
    if reason:
        raise ValueError(f"treecrf: cannot {action} {str(path)!r}: {reason}")
    return status


def _reason_against(path: Path, status: os.stat_result) -> str:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return "it is a folder; name a file"
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return ""
    if not stat.S_ISREG(mode):
        return "it is a block device or a socket; name a file"
    if not mode & _ANY_WRITE or not os.access(path, os.W_OK):
        return "it is read-only; name another file, or make it writable first"
    if not _may_keep_owner(status):
        return "its owner or group would change; name another file, or delete it first"
    return ""


def _may_keep_owner(status: os.stat_result) -> bool:
    if os.name == "nt" or os.geteuid() == 0:
        return True
    groups = {os.getegid(), *os.getgroups()}
    return status.st_uid == os.geteuid() and status.st_gid in groups


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], action: str = "write") -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` in the end if all went well.

    Links stay, and what they point to is replaced. A file keeps its mode and owner; a new one has
    those that `open` would give it. A read-only file is refused, whoever asks. FIFOs and character
    devices are written to as they are, block devices and sockets are refused.
    """
    named = as_path(path, action)
    old = check_target(named, action)
    target = Path(os.path.realpath(named))
    try:
        if old is not None and not stat.S_ISREG(old.st_mode):
            with _open_special(named) as file:
                yield file
        else:
            _remove_stale(target)
            with _beside(target, old) as file:
                yield file
    except OSError as error:
        # An error without a file is one of writing; others are of what the writer reads.
        about = "" if error.filename is None else str(error.filename)
        if about in ("", str(named)) or os.path.basename(about).startswith(_prefix(target)):
            raise _refused(named, action, error) from error
        raise


def _refused(path: Path, action: str, error: OSError) -> ValueError:
    reason = error.strerror or str(error)
    remedy = "check free space and permissions of its folder"
    if error.errno == errno.ENXIO:
        reason, remedy = "nobody reads from it", "start its reader first"
    return ValueError(f"treecrf: cannot {action} {str(path)!r}: {reason}; {remedy}")


def _open_special(path: Path) -> BinaryIO:
    # Without waiting for a reader: opening a FIFO would hang until there is one.
    number = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(number, True)
    return os.fdopen(number, "wb")


@contextlib.contextmanager
def _beside(target: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    path, file = _new_beside(target, private=old is not None)
    try:
        with file:
            yield file
            file.flush()
            if old is not None:
                keep_owner_and_mode(path, old)
            os.fsync(file.fileno())
            if os.name == "nt":  # which renames no open file
                file.close()
            os.replace(path, target)  # before the lock goes with the closing
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _new_beside(target: Path, private: bool) -> tuple[Path, BinaryIO]:
    """A new, locked file in the folder of the target, as renames stay within a file system."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}{_SUFFIX}")
        # Not by `tempfile`, whose files nobody else may read.
        file = os.fdopen(os.open(path, flags, 0o600 if private else 0o666), "wb")
        if fcntl is None:
            return path, file
        with contextlib.suppress(OSError):  # a file system without locks: nobody removes it there
            fcntl.flock(file, fcntl.LOCK_EX)
        # Another writer may have taken it for a stale one before it was locked.
        if path.exists():
            return path, file
        file.close()


def _prefix(target: Path) -> str:
    """The beginning of the names of files that are to become the target."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()
    return f".treecrf-{digest[:16]}-"


def keep_owner_and_mode(path: Path, old: os.stat_result) -> None:
    """Give a file or folder the owner and mode of the one that it will replace."""
    new = path.stat()
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _remove_stale(target: Path) -> None:
    """Remove what killed writers of the target have left: nobody holds a lock on it."""
    if fcntl is None:
        return
    prefix = _prefix(target)
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(target.parent) if name.startswith(prefix)]
        for name in names:
            path = target.with_name(name)
            if name.endswith(_SUFFIX) and stat.S_ISREG(os.lstat(path).st_mode):
                with contextlib.suppress(OSError), path.open("ab") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def refuse_inputs(output: Path, inputs: Iterable[str | Path | None]) -> None:
    """Refuse an output that is one of the inputs, or lies in a folder that is one."""
    try:
        status = os.stat(output)
    except OSError:  # what is not there is no input
        return
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):
        return
    parents = Path(os.path.realpath(output)).parents
    for each in inputs:
        if each is None:
            continue
        with contextlib.suppress(OSError, ValueError):
            found = os.fstat(0) if str(each) == STDIN else os.stat(each)
            inside = stat.S_ISDIR(found.st_mode) and Path(os.path.realpath(each)) in parents
            if inside or os.path.samestat(status, found):
                break
    else:
        return
    name = "the standard input" if str(each) == STDIN else each
    raise ValueError(
        f"treecrf: the output {output} {'lies in' if inside else 'is'} the input {name}, which "
        "would be lost; name another output"
    )

"""Files: writers that are killed, disks that are full, outputs that are special, damaged models."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hardening.damage import damaged_bytes
from tests.hardening.file_limits import largest_file

from attacks.sides import SIDES, Labels, Side
from attacks.trials import Outcome, in_fork

KILLS = 20
MUTANTS = 200
LONGEST_KILL = 0.02  # seconds after a write was seen
WAIT = 20.0


def killed_writers(name: str, folder: Path) -> dict[str, Any]:
    """kill -9 in the midst of a save over an older model: is the old or the new one there?"""
    side = SIDES[name]()
    models = [side.train(size) for size in (side.small, side.small + 1)]
    known = [side.predict(model) for model in models]
    path, found, draw = folder / "model", Counter[str](), random.Random(0)
    for _ in range(KILLS):
        _remove(path)
        side.save(models[0], path)
        before = _fingerprint(folder)
        child = os.fork()
        if not child:
            while True:
                side.save(models[1], path)
        deadline = time.monotonic() + WAIT
        while _fingerprint(folder) == before and time.monotonic() < deadline:
            pass
        time.sleep(draw.uniform(0.0, LONGEST_KILL))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found[_state_of(side, path, known)] += 1
    return dict(found)


def full_disk(name: str, folder: Path) -> dict[str, Any]:
    """Saves over an older model under a limit on the size of files, as `ulimit -f` sets it."""
    side = SIDES[name]()
    old, new = (side.train(size) for size in (side.small, side.small + 1))
    known = [side.predict(old), side.predict(new)]
    path, found = folder / "model", Counter[str]()
    side.save(old, path)
    size = max(file.stat().st_size for file in side.files(path))
    for limit in (0, 1, 100, 4096, size // 4, size // 2, size - 1000):
        _remove(path)
        side.save(old, path)

        def save(limit: int = limit) -> None:
            with largest_file(limit):
                side.save(new, path)

        outcome = in_fork(save)
        said = {"done": "no error", "error": f"{outcome.error}"}.get(outcome.end, outcome.end)
        found[f"{said}, {_state_of(side, path, known)}"] += 1
    return dict(found)


def special_outputs(name: str, folder: Path) -> dict[str, Any]:
    """A FIFO with and without a reader, a device, a mode, a file that is read-only."""
    side = SIDES[name]()
    model = side.train(side.small)
    side.save(model, folder / "plain")
    target = max(side.files(folder / "plain"), key=lambda file: file.stat().st_size)
    plain, inside = target.read_bytes(), target.relative_to(folder / "plain")

    def fresh(kind: str) -> tuple[Path, Path]:
        """A model to save to, and the file in it that is special."""
        path = folder / kind
        side.save(model, path)
        return path, path / inside if inside.parts else path

    def saved(path: Path, seconds: float = 30.0) -> Outcome:
        return in_fork(lambda: side.save(model, path), seconds)

    return {
        "FIFO": _fifo_with_reader(*fresh("read"), saved, plain),
        "FIFO without a reader": _fifo_alone(*fresh("alone"), saved),
        "device": _device(*fresh("device"), saved),
        "mode 0600": _mode(*fresh("mode"), saved),
        "read-only": _read_only(*fresh("locked"), saved),
    }


Save = Callable[..., Outcome]


def _fifo_with_reader(path: Path, file: Path, save: Save, plain: bytes) -> str:
    file.unlink()
    os.mkfifo(file)
    received = path.parent / "received"
    with received.open("wb") as output:
        reader = subprocess.Popen(["cat", str(file)], stdout=output)
        outcome = save(path)
        try:
            reader.wait(5)
        except subprocess.TimeoutExpired:
            reader.kill()
            reader.wait()
    whole = "reader got all" if received.read_bytes() == plain else "reader did not get it"
    return f"{_kind(file, stat.S_ISFIFO)}, {_said(outcome)}, {whole}"


def _fifo_alone(path: Path, file: Path, save: Save) -> str:
    file.unlink()
    os.mkfifo(file)
    return f"{_kind(file, stat.S_ISFIFO)}, {_said(save(path, 5.0))}"


def _device(path: Path, file: Path, save: Save) -> str:
    """A node like /dev/null, in the temporary folder."""
    file.unlink()
    try:
        os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        file.open("rb").close()
    except OSError:
        return "not tried: this machine lets nobody make devices here"
    outcome = save(path)
    return f"{_kind(file, stat.S_ISCHR)}, {_said(outcome)}"


def _mode(path: Path, file: Path, save: Save) -> str:
    file.chmod(0o600)
    outcome = save(path)
    mode = stat.S_IMODE(file.stat().st_mode)
    return f"{'kept' if mode == 0o600 else f'became {mode:04o}'}, {_said(outcome)}"


def _read_only(path: Path, file: Path, save: Save) -> str:
    file.chmod(0o444)
    before = file.stat()
    outcome = save(path)
    after = file.stat()
    same = (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    return f"{'kept' if same else 'overwritten'}, {_said(outcome)}"


def damaged_models(name: str, folder: Path) -> dict[str, Any]:
    """Random changes of model files: bytes changed, added, cut off."""
    side = SIDES[name]()
    model = side.train(side.small)
    path, found, known = folder / "model", Counter[str](), side.predict(model)
    side.save(model, path)
    contents = {file: file.read_bytes() for file in side.files(path)}
    for i in range(MUTANTS):
        draw = random.Random(i)
        file = draw.choice(list(contents))
        file.write_bytes(damaged_bytes(contents[file], draw)[0])
        outcome = in_fork(lambda: side.predict(side.load(path)))
        found[_judged(outcome, file, known)] += 1
        file.write_bytes(contents[file])
    return dict(found)


def _judged(outcome: Outcome, file: Path, known: Labels) -> str:
    if outcome.end == "done":
        return "same predictions" if outcome.value == known else "other predictions, no error"
    if outcome.end != "error":
        return f"{outcome.end} {outcome.message}".strip()
    if outcome.error in ("ValueError", "OSError") and file.name in outcome.message:
        return "refused, file named"
    return "refused, no file named" if outcome.error == "ValueError" else outcome.error


def _state_of(side: Side, path: Path, known: list[Labels]) -> str:
    """Which of two models is at the path, to one who loads and uses it."""
    outcome = in_fork(lambda: side.predict(side.load(path)))
    if outcome.end == "done":
        return "old or new model there" if outcome.value in known else "another model there"
    return "model lost" if outcome.end == "error" else f"model lost, loading it: {outcome.end}"


def _said(outcome: Outcome) -> str:
    if outcome.end == "done":
        return "no error"
    return f"{outcome.error}" if outcome.end == "error" else outcome.end


def _kind(file: Path, right: Callable[[int], bool]) -> str:
    return "stays" if right(os.lstat(file).st_mode) else "replaced by a file"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _fingerprint(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What changes as soon as something in the folder is written."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found

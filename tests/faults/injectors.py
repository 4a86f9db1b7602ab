"""Faults to order: a file system that fails at its n-th call, a process that dies at its n-th step, damaged bytes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.stores.parquet.filesystem import LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CALLS = ("read", "read_ranges", "list_folder", "exists", "create_if_absent", "put", "delete", "make_folder")
"""The calls of a file system that can fail."""

_CHANGING = ("create_if_absent", "put", "delete", "make_folder")


@dataclass
class Trigger:
    """Counts calls, and says when the one that is to fail has come (and all after it, if that lasts).

    ``fired`` is the name of the call then.
    """

    at: int
    lasts: bool = False
    calls: int = 0
    fired: str | None = None

    def __call__(self, name: str) -> bool:
        self.calls += 1
        if self.calls < self.at or (self.calls > self.at and not self.lasts):
            return False
        self.fired = name
        return True


class FaultyFileSystem(LocalFileSystem):
    """A local disk whose n-th call goes wrong, in one of the ways of ``FAULTS``.

    Parameters
    ----------
    fault
        What happens: takes the call's name, how to do it properly, and its arguments.
    at
        Which call it happens to, counted from 1 over all methods.
    lasts
        Whether it happens to all calls after that one too.
    """

    def __init__(self, fault: Callable[..., Any], at: int, *, lasts: bool = False) -> None:
        self.trigger = Trigger(at, lasts)
        self._fault = fault

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in CALLS:
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            if self.trigger(name):
                return self._fault(name, method, *arguments, **options)
            return method(*arguments, **options)

        return call


def _raises(number: int) -> Callable[..., Any]:
    """Fail before anything is done."""

    def fault(name: str, method: Any, path: str, *_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number), path)

    return fault


def raises_afterwards(name: str, method: Any, path: str, *arguments: Any, **options: Any) -> Any:
    """Do what was asked and then fail: the connection broke before the answer came."""
    if name in _CHANGING:
        method(path, *arguments, **options)
    raise OSError(errno.ECONNRESET, os.strerror(errno.ECONNRESET), path)


def reads_short(name: str, method: Any, path: str, *arguments: Any, **options: Any) -> Any:
    """Return half of what was asked for; where nothing is read, fail."""
    if name == "read":
        return method(path, *arguments, **options)[: arguments[0] // 2]
    if name == "read_ranges":
        return [block[: len(block) // 2] for block in method(path, *arguments, **options)]
    raise OSError(errno.EIO, os.strerror(errno.EIO), path)


def lists_stale(name: str, method: Any, path: str, *arguments: Any, **options: Any) -> Any:
    """List without the newest file, as an eventually consistent store may; what is no listing goes well."""
    found = method(path, *arguments, **options)
    return sorted(found)[:-1] if name == "list_folder" else found


def disk_is_full(name: str, method: Any, path: str, *arguments: Any, **options: Any) -> Any:
    """Fail half-way through a write, and leave that half behind; reading goes well."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if name == "make_folder":
        raise full
    if name in ("create_if_absent", "put"):
        data = arguments[0] if name == "create_if_absent" else arguments[0].read_bytes()
        target = LocalFileSystem._local(path)
        target.with_name(f".{'0' * 32}.tmp").write_bytes(data[: len(data) // 2])
        raise full
    return method(path, *arguments, **options)


def writes_half(name: str, method: Any, path: str, *arguments: Any, **options: Any) -> Any:
    """Fail half-way through a write under the final name, as where writes are not atomic; reading goes well."""
    if name not in ("create_if_absent", "put"):
        return method(path, *arguments, **options)
    data = arguments[0] if name == "create_if_absent" else arguments[0].read_bytes()
    LocalFileSystem._local(path).write_bytes(data[: len(data) // 2])
    raise OSError(errno.EIO, os.strerror(errno.EIO), path)


FAULTS: dict[str, Callable[..., Any]] = {
    "EIO": _raises(errno.EIO),
    "EACCES": _raises(errno.EACCES),
    "ETIMEDOUT": _raises(errno.ETIMEDOUT),
    "ENOENT": _raises(errno.ENOENT),
    "fails after it was done": raises_afterwards,
    "short read": reads_short,
    "stale listing": lists_stale,
    "disk full": disk_is_full,
    "half written": writes_half,
}

_STEPS = frozenset(
    {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir", "os.truncate", "os.utime"}
)


def die_at(step: int, folder: Path) -> None:
    """Let this process be killed right before its n-th step on files under a folder (and not be synced to disk)."""
    trigger, inside = Trigger(step), str(folder)

    def killed(name: str) -> None:
        if trigger(name):
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STEPS and any(inside in _named(event, arguments, a) for a in arguments[:2]):
            killed(event)

    sys.addaudithook(hook)
    os.fsync = lambda _: killed("fsync")


def _named(event: str, arguments: tuple[Any, ...], argument: Any) -> str:
    """Return the path that an argument of a step names; one relative to an open folder lies in that."""
    if not isinstance(argument, str | os.PathLike):
        return ""
    path = os.fspath(argument)
    folder = arguments[-1] if event in ("os.remove", "os.rmdir") and isinstance(arguments[-1], int) else -1
    return path if folder < 0 or os.path.isabs(path) else f"{os.readlink(f'/proc/self/fd/{folder}')}/{path}"


def run_and_die(action: Callable[..., None], step: int, *arguments: Any) -> bool:
    """Run an action in a process of its own that is killed at its n-th step; say whether it got that far."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.actions"])
    process = context.Process(target=action, args=(step, *arguments))
    process.start()
    process.join(60)
    if process.exitcode not in (0, -signal.SIGKILL):
        msg = f"the process ended with {process.exitcode} instead of being killed or done"
        raise AssertionError(msg)
    return process.exitcode != 0


def flips(whole: bytes, chosen: random.Random, most: int | None) -> Iterator[tuple[str, bytes]]:
    """Flip a bit of each byte, or of a sample of bytes spread over the whole file."""
    places = range(len(whole)) if most is None else _spread(len(whole), most, chosen)
    for place in places:
        yield "flipped byte", whole[:place] + bytes([whole[place] ^ (1 << chosen.randrange(8))]) + whole[place + 1 :]


def cuts(whole: bytes, chosen: random.Random, most: int | None) -> Iterator[tuple[str, bytes]]:
    """Cut the file at every length, or at a sample of lengths, the empty file included."""
    yield "empty file", b""
    for place in range(1, len(whole)) if most is None else _spread(len(whole), most, chosen):
        yield "truncated", whole[:place]


def rewrites(whole: bytes, chosen: random.Random) -> Iterator[tuple[str, bytes]]:
    """Change more than a byte: zeros, noise, something more at the end, a page of zeros in the middle."""
    yield "zeros", bytes(len(whole))
    yield "noise", chosen.randbytes(len(whole))
    yield "longer", whole + b"x"
    middle = len(whole) // 2
    yield "hole", whole[:middle] + bytes(min(512, len(whole) - middle)) + whole[middle + 512 :]


def _spread(length: int, most: int, chosen: random.Random) -> list[int]:
    """Choose places, one from each of as many equal stretches."""
    step = max(1.0, length / most)
    return [min(length - 1, int(n * step + chosen.random() * step)) for n in range(min(most, length))]

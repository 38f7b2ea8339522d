"""What private, throw-away servers have in common: a home, an unprivileged user, a port, an end."""

import atexit
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import psutil

T = TypeVar("T")

LEASH = Path(__file__).with_name("leash.py")
# Not TMPDIR: a socket's path must be short, and TMPDIR may lie below a home that is closed to others.
TEMPORARY = Path("/tmp")  # noqa: S108
PREFIX = "idempotency-tests-"
START_LIMIT = 60.0


class ServerFailed(Exception):
    """A server cannot be found or does not start. The text says what to do."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A server's executable, from the wheel *package* or, without one, of this machine."""

    path: Path
    package: str = ""
    copied: bool = False

    @property
    def origin(self) -> str:
        origin = f"wheel {self.package.replace('_', '-')}" if self.package else "this machine's"
        return f"{origin}, copied" if self.copied else origin

    def version(self) -> tuple[int, ...]:
        """The first dotted number that ``--version`` prints after the program's name."""
        answer = subprocess.run([self.path, "--version"], capture_output=True, text=True)
        found = re.search(r"(?:Ver |\) |v=)(\d+(?:\.\d+)*)", answer.stdout)
        return tuple(map(int, found[1].split("."))) if found else ()


class Home:
    """A temporary directory owned by an unprivileged user where we are root, else by ourselves."""

    def __init__(self, *, name: str, users: tuple[str, ...]) -> None:
        self.user = unprivileged_user(*users)
        self.settings: dict[str, str] = {}
        self.path = temporary_directory(name)
        if self.user:
            shutil.chown(self.path, self.user)

    def spawn(self, *command: str | Path, end: signal.Signals) -> subprocess.Popen[bytes]:
        """Start *command* here; *end* is sent to it when this process is gone."""
        with self.log.open("ab") as log:
            return spawn(*command, end=end, user=self.user, cwd=self.path, stdout=log, env=self.environment)

    def reaches(self, program: Path) -> bool:
        check = self.spawn("test", "-x", program, end=signal.SIGKILL)
        return check.wait() == 0

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def environment(self) -> dict[str, str]:
        ours = {"PATH": os.environ["PATH"], "HOME": str(self.path), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        return {**ours, **self.settings}


class PrivateServer:
    """A server on a free port of 127.0.0.1 that lives as long as the tests and keeps nothing.

    Started in three parts, so that several start side by side: ``prepare``, ``start``, ``wait``.
    """

    name: ClassVar[str]
    variable: ClassVar[str]
    users: ClassVar[tuple[str, ...]] = ()
    oldest: ClassVar[tuple[int, ...]] = ()
    end: ClassVar[signal.Signals] = signal.SIGKILL
    hint: ClassVar[str]

    def __init__(self) -> None:
        self.program = self.find()
        self.home = Home(name=self.name, users=self.users)
        self.port = free_port()
        self.preparation: subprocess.Popen[bytes] | None = None
        self.process: subprocess.Popen[bytes]

    @classmethod
    def find(cls) -> Program:
        """:raises ServerFailed: when there is none, or only ones that are too old."""
        too_old = []
        for program in cls.programs():
            if (version := program.version()) >= cls.oldest:
                return program
            too_old.append(f"{program.path} is {'.'.join(map(str, version))}")
        raise ServerFailed("; ".join([f"No {cls.name} for the tests: {cls.hint}", *too_old]))

    @classmethod
    def programs(cls) -> Iterator[Program]:
        raise NotImplementedError

    @property
    def url(self) -> str:
        raise NotImplementedError

    @classmethod
    def probe(cls, url: str) -> str:
        """The version of the server at *url*; any exception means that it does not serve."""
        raise NotImplementedError

    def preparation_command(self) -> list[str | Path]:
        return []

    def command(self) -> list[str | Path]:
        raise NotImplementedError

    def prepare(self) -> None:
        if command := self.preparation_command():
            self.preparation = self.home.spawn(*command, end=signal.SIGKILL)

    def start(self) -> None:
        if self.preparation and self.preparation.wait(START_LIMIT):
            raise self.failure("cannot be prepared")
        self.process = self.home.spawn(*self.command(), end=self.end)
        at_end(self.stop)

    def wait(self) -> str:
        """Return the version once it answers."""
        try:
            return wait_until(lambda: self.probe(self.url), alive=self.is_running)
        except TimeoutError as error:
            raise self.failure(f"does not start ({error})") from error

    def is_running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.send_signal(self.end)
        self.process.wait()

    def failure(self, trouble: str) -> ServerFailed:
        log = self.home.log.read_text(errors="replace")[-3000:]
        return ServerFailed(f"{self.name} ({self.program.path}) {trouble}:\n{log}")


def spawn(
    *command: str | Path,
    end: signal.Signals,
    user: str | None = None,
    **options: object,
) -> subprocess.Popen[bytes]:
    """Start *command* so that it gets the signal *end* when this process is gone."""
    leash = [sys.executable, "-IS", LEASH, end.name, user or ""]
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [*leash, *command], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, **options
    )


def wait_until(probe: Callable[[], T], *, alive: Callable[[], bool]) -> T:
    """Return what *probe* returns as soon as it does not raise.

    :raises TimeoutError: when the process is not *alive* any more, or after a minute.
    """
    end = time.monotonic() + START_LIMIT
    while True:
        try:
            return probe()
        except Exception as error:
            if time.monotonic() > end or not alive():
                raise TimeoutError(str(error)) from error
        time.sleep(0.02)


def temporary_directory(purpose: str) -> Path:
    """A directory that is removed when this process ends, or else by the next run."""
    for path in TEMPORARY.glob(f"{PREFIX}*"):
        if not psutil.pid_exists(int(path.name.split("-")[-2])):
            shutil.rmtree(path, ignore_errors=True)
    name = f"{PREFIX}{purpose.lower()}-{os.getpid()}-"
    path = Path(tempfile.mkdtemp(prefix=name, dir=TEMPORARY))
    at_end(lambda: shutil.rmtree(path, ignore_errors=True))
    return path


def at_end(action: Callable[[], object]) -> None:
    """Call *action* when this process ends, but not in one forked from it."""
    owner = os.getpid()
    atexit.register(lambda: action() if os.getpid() == owner else None)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def unprivileged_user(*names: str) -> str | None:
    """The first of *names*, or nobody, where we are root and the server refuses to run as root."""
    if os.geteuid() != 0 or not names:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in (*names, "nobody") if name in known)


def installed(*names: str) -> Iterator[Program]:
    """Programs of this machine; the system directories count even where PATH leaves them out."""
    if os.environ.get("TEST_SERVERS") == "wheel":
        return
    places = os.pathsep.join([os.environ["PATH"], "/usr/local/sbin", "/usr/sbin", "/opt/homebrew/bin"])
    for name in names:
        if found := shutil.which(name, path=places):
            yield Program(path=Path(found))


def packaged(*, package: str, pattern: str) -> Iterator[Program]:
    """Programs that the wheel of *package* brought."""
    spec = importlib.util.find_spec(package)
    for place in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(place).glob(pattern)):
            yield Program(path=path, package=package)

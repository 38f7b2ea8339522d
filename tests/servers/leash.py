"""Become a program that ends with its parent: ``python leash.py SIGNAL USER PROGRAM ARGUMENT…``.

An empty USER keeps the present one. Only Linux can tie a process to its parent; elsewhere the
program simply runs. A script of its own, because forking with a Python function is unsafe, and
warned about, as soon as the parent has threads.
"""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(end: str, user: str, program: str, *arguments: str) -> None:
    path = shutil.which(program)
    if not path:
        sys.exit(f"{program}: not found")
    # Nothing is imported from here on: the new user may not reach Python's own files.
    if user:
        become(pwd.getpwnam(user))
    end_with_parent(signal.Signals[end])  # after the change of user, which would undo it
    os.execv(path, [path, *arguments])  # noqa: S606


def become(entry: pwd.struct_passwd) -> None:
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def end_with_parent(end: signal.Signals) -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, end.value)


if __name__ == "__main__":
    main(*sys.argv[1:])

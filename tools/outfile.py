# SPDX-License-Identifier: BSD-2-Clause
"""Files that the user names for what a tool writes, as sys/output.c has it: whole or not at all; no
symbolic link is followed, no device opened but terminals and /dev/null."""
import errno
import os
import re
import stat
import sys
import tempfile

STREAM = re.compile(r'/dev/(stdout|stderr|fd/\d+)|/proc/self/fd/\d+')


def in_place(path):
    """Is it written to as it is (a pipe, a terminal, a stream), not replaced by a file? OSError: neither."""
    stream = STREAM.fullmatch(path)
    try:
        st = os.stat(path) if stream else os.lstat(path)
    except FileNotFoundError:
        return False
    kind = st.st_mode
    if stat.S_ISREG(kind):
        return bool(stream)
    if stat.S_ISCHR(kind):
        major = os.major(st.st_rdev)
        if st.st_rdev == os.makedev(1, 3) or major in (4, 5) or 136 <= major <= 143:
            return True
    elif stat.S_ISFIFO(kind):
        return True
    if stat.S_ISLNK(kind):
        raise OSError(errno.ELOOP, 'it is a symbolic link; those are not followed')
    if stat.S_ISDIR(kind):
        raise OSError(errno.EISDIR, 'it is a directory')
    raise OSError(errno.ENODEV, 'it is a device')


def write(path, data):
    """`data` as bytes."""
    if in_place(path):
        flags = os.O_WRONLY | os.O_APPEND | (0 if STREAM.fullmatch(path) else os.O_NOFOLLOW)
        with os.fdopen(os.open(path, flags), 'wb') as f:
            f.write(data)
        return
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or '.', prefix='.hybrid-')
    try:
        with os.fdopen(handle, 'wb') as f:
            f.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def tell(text, error=False):
    """A line for the user. When nobody listens any more, or there is no room for it, the work goes on."""
    try:
        print(text, file=sys.stderr if error else sys.stdout, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2 if error else 1)  # what is left in the buffer goes there
        os.close(nowhere)

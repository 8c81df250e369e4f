# SPDX-License-Identifier: BSD-2-Clause
"""The journal of hybridctl batch: one JSON line for each start and end, on the disk before the batch goes
on, so that whatever kills the batch or the machine, --resume knows what was done. A line that was torn
is passed over; a disk that is full is told once, and costs only what --resume would know."""
import errno
import fcntl
import hashlib
import json
import os

import outfile

VERSION = 1


class Busy(Exception):
    """Another batch has this folder."""


class Stranger(Exception):
    """The journal is of other jobs."""


def fingerprint(jobs):
    """Of what is run, in its order: names and comments may change."""
    text = json.dumps([[j.key, sorted(j.after)] for j in jobs])
    return hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:16]


def read(path):
    """Events that are whole, in their order."""
    try:
        with open(path, 'rb') as f:
            data = f.read()
    except FileNotFoundError:
        return []
    events = []
    for line in data.split(b'\n'):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get('event'), str):
            events.append(event)
    return events


def is_number(v, kind=(int, float)):
    return isinstance(v, kind) and not isinstance(v, bool)


class Past:
    """What a journal tells: `ended`, {index: last end}; `started`, {index: start without an end}; `spans`,
    for the page."""

    def __init__(self, events, jobs):
        self.ended, self.started, self.spans = {}, {}, []
        self.begun = None
        self.finished = any(e['event'] == 'finish' for e in events)
        begins = [e for e in events if e['event'] == 'begin']
        if begins:
            self.begun = begins[0].get('time')
            if begins[0].get('version') != VERSION or begins[0].get('jobs') != fingerprint(jobs):
                raise Stranger()
        for e in events:
            i = e.get('job')
            if not is_number(i, int) or not 0 <= i < len(jobs):
                continue
            if e['event'] == 'start' and is_number(e.get('time')):
                self.started[i] = e
            elif e['event'] == 'end' and is_number(e.get('status'), int) and is_number(e.get('time')):
                if i in self.started:
                    self.spans.append((self.started.pop(i), e))
                self.ended[i] = e


class Journal:
    def __init__(self, path):
        self.path, self.torn, self.told = path, False, False
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            os.close(self.fd)
            raise Busy() from e
        size = os.fstat(self.fd).st_size
        self.torn = size > 0 and os.pread(self.fd, 1, size - 1) != b'\n'

    def clear(self):
        os.ftruncate(self.fd, 0)
        self.torn = False

    def add(self, event, **fields):
        """False: it could not be written; said once."""
        line = json.dumps(dict(event=event, **fields)).encode() + b'\n'
        data = b'\n' + line if self.torn else line
        try:
            written = os.write(self.fd, data)
            self.torn = written != len(data)
            if self.torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self.fd)
            return True
        except OSError as e:
            if not self.told:
                outfile.tell('\nhybridctl batch: %s: %s; the jobs go on, but --resume may run again what is not in it' % (
                    self.path, e.strerror), error=True)
            self.told = True
            return False

    def close(self):
        os.close(self.fd)

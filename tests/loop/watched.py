# SPDX-License-Identifier: Apache-2.0
"""Servers of tests/realbugs that start under culprit watch, and what the watch says.

under_watch(ServerClass, watch) is that server started as

    culprit watch FLAGS -- [setpriv ...] [env LD_PRELOAD=...] COMMAND

so faults reach the server and nobody else, and the watch keeps its rights. Its
folder of state outlives a restart of the server: the second start finds a profile.
"""

import contextlib
import glob
import json
import os
import pwd
import signal
import subprocess
import time

from harness import Failed, descendants, wait_until

TICKS = os.sysconf('SC_CLK_TCK')
TRAINED_WITHIN_S = 150
ENDS_WITHIN_S = 120


def cpu_s(pid):
    """Of one process, without its children; 0 once it is gone."""
    with contextlib.suppress(OSError, IndexError), open(f'/proc/{pid}/stat', encoding='latin-1') as stat:
        fields = stat.read().rpartition(')')[2].split()
        return sum(int(field) for field in fields[11:13]) / TICKS
    return 0.0


def command_of(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/cmdline', 'rb') as line:
        return line.read().split(b'\0')
    return []


def recorder_of(watch):
    """The watch's recorder, once it answers; None before."""
    for pid in descendants(watch)[1:]:
        if command_of(pid)[1:2] == [b'record'] and os.path.exists(f'/run/culprit/record-{pid}.sock'):
            return pid
    return None


class Watch:
    """A state folder and the flags with which servers are watched."""

    def __init__(self, culprit, folder, train_s=15.0, flags=()):
        self.culprit = culprit
        self.state = os.path.join(folder, 'state')
        self._flags = ['--train-for', f'{round(1000 * train_s)}ms', *flags]

    def words(self):
        return [self.culprit, 'watch', '--state', self.state, *self._flags, '--']

    def inbox(self, since_s=0.0):
        """The items of the last analysis, if that ended after a time of the calendar; else none."""
        path = os.path.join(self.state, 'inbox.json')
        with contextlib.suppress(OSError, json.JSONDecodeError):
            if os.path.getmtime(path) <= since_s:
                return []
            with open(path, encoding='utf-8') as file:
                return json.load(file)['items']
        return []

    def reports(self):
        """Slow units so far, in the order they were found."""
        rows = []
        for path in sorted(glob.glob(os.path.join(self.state, 'reports', '*.jsonl'))):
            with open(path, encoding='utf-8') as file:
                for line in file:
                    # The last line may be on its way.
                    with contextlib.suppress(json.JSONDecodeError):
                        rows.append(json.loads(line))
        return rows

    def traces(self):
        done = subprocess.run([self.culprit, 'corpus', 'list', os.path.join(self.state, 'corpus'), '--json'],
                              check=False, capture_output=True, text=True)
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(done.stdout)['traces']
        return []


def under_watch(server_class, watch):
    class Watched(server_class):
        """self.process is the watch; the server is its child."""

        def start(self, with_faults=False):
            if self.process is None:
                self.set_up()
            self.said = self.path('watch.log')
            with open(self.path('log'), 'ab') as log, open(self.said, 'ab') as said:
                # The watch says what it has to say on its standard error; the server has its own.
                errors = self.stderr(log)
                errors = errors if isinstance(errors, int) else errors.fileno()
                own_errors = ['bash', '-c', f'exec "$@" 2>&{errors}', 'bash']
                self.process = subprocess.Popen(
                    watch.words() + own_errors + self._launcher(with_faults) + self.command(), stdin=self.stdin(),
                    stdout=log, stderr=said, env=dict(os.environ, LC_ALL='C'), cwd=self.folder, pass_fds=(errors,),
                    start_new_session=True)
            self.session.running.append(self)
            wait_until(f'start of {self.program} (see {self.path("log")})', self._ready_or_dead)

        def _launcher(self, with_faults):
            words = []
            if self.user and os.geteuid() == 0:
                subprocess.run(['chown', '-R', self.user, self.folder], check=True)
                group = pwd.getpwnam(self.user).pw_gid
                words += ['setpriv', f'--reuid={self.user}', f'--regid={group}', '--clear-groups']
            if with_faults:
                self._faults = self.path('faults')
                with open(self._faults, 'wb') as file:
                    file.write(bytes(4096))
                os.chmod(self._faults, 0o644)
                words += ['env', f'LD_PRELOAD={self.session.fault_library()}', f'CULPRIT_FAULT={self._faults}']
            return words

        def watch_said(self):
            with open(self.said, encoding='utf-8', errors='replace') as file:
                return file.read()

        def guarded(self):
            """Does the watch guard the server yet?"""
            if self.process.poll() is not None:
                raise Failed(f'the watch ended with {self.process.returncode}: {self.watch_said()[-500:]}')
            return 'watching process' in self.watch_said() and recorder_of(self.process.pid) is not None

        def observers_cpu_s(self):
            """CPU time of the watch and its recorder, without analyses; and of the server."""
            watchers = [self.process.pid]
            servers = []
            for pid in descendants(self.process.pid)[1:]:
                command = command_of(pid)
                ours = bool(command) and os.path.basename(command[0]) == b'culprit'
                if ours and command[1:2] == [b'record']:
                    watchers.append(pid)
                elif not ours and command[:1] != [b'nice']:
                    servers.append(pid)
            return sum(map(cpu_s, watchers)), sum(map(cpu_s, servers))

        def stop(self):
            """As an administrator would: the watch ends, and the server with it."""
            if self in self.session.running and self.process.poll() is None:
                if self._faults:
                    self.fault()
                self.process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(ENDS_WITHIN_S)
            super().stop()

    Watched.__name__ = server_class.__name__
    return Watched


def keep_loading(load, server, seconds, until):
    """The load in pieces until something is so, or for some seconds; did it happen?"""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if until():
            return True
        load(server, 2)
    return until()

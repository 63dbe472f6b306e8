# SPDX-License-Identifier: Apache-2.0
"""Real servers in private folders, on loopback, ended by their process ids.

A Server is a process with its folder and its port. It is started as
WRAP... COMMAND..., where WRAP is nothing, or whatever is to watch it. With faults
the library of fault.c is preloaded; fault() changes what it does while the server
runs. Everything a server writes is below its folder, which goes with the Session.
"""

import contextlib
import mmap
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# The order is that of enum Fault in fault.c.
FAULTS = ['accept_fails', 'receive_fails', 'send_fails', 'receive_again', 'send_bytes',
          'sync_again', 'sync_sleeps', 'send_sleeps']


class Failed(Exception):
    """What a case needs could not be had; the message says what."""


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_until(what, happens, seconds=30.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return
        time.sleep(0.05)
    raise Failed(f'{what} did not happen within {seconds:.0f} s')


def descendants(root):
    """The process and all that come from it, parents first."""
    children = {}
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f'/proc/{name}/stat', encoding='latin-1') as stat:
            state, parent = stat.read().rpartition(')')[2].split()[:2]
            if state != 'Z':
                children.setdefault(int(parent), []).append(int(name))
    found = [root]
    for pid in found:
        found += sorted(children.get(pid, []))
    return found


class Session:
    """A temporary folder, what was made once for all cases, and what still runs."""

    def __init__(self, wrap=()):
        self.folder = tempfile.mkdtemp(prefix='culprit-realbugs-')
        os.chmod(self.folder, 0o755)
        self.wrap = list(wrap)
        self.running = []
        self._templates = {}
        self._fault_library = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in list(self.running):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def fault_library(self):
        if self._fault_library is None:
            library = os.path.join(self.folder, 'libc-fault.so')
            source = os.path.join(HERE, 'fault.c')
            subprocess.run(['cc', '-O2', '-g0', '-shared', '-fPIC', '-o', library, source], check=True)
            self._fault_library = library
        return self._fault_library

    def copy_of(self, name, make, to):
        """Copies what make(folder) makes, which is done once: databases take long to set up."""
        if name not in self._templates:
            folder = os.path.join(self.folder, 'template-' + name)
            make(folder)
            self._templates[name] = folder
        subprocess.run(['cp', '-a', self._templates[name], to], check=True)


class Server:
    """One server of a Session; subclasses say how it is set up, started and asked."""

    program = ''      # must be there, or the case is left out
    needs = ()        # and these
    user = None       # who it runs as; nobody in particular: whoever runs this
    stop_signal = signal.SIGTERM
    profile_flags = ()  # of the recordings that a profile is made of

    def __init__(self, session, **settings):
        self.session = session
        self.settings = settings
        self.folder = tempfile.mkdtemp(prefix=type(self).__name__.lower() + '-', dir=session.folder)
        os.chmod(self.folder, 0o755)
        self.port = free_port()
        self.process = None
        self._faults = None

    # ---- what subclasses say

    def set_up(self):
        """Makes files, before the first start."""

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        return can_connect(self.port)

    def stdin(self):
        return subprocess.DEVNULL

    # ---- running

    @classmethod
    def missing(cls):
        return [name for name in (cls.program, *cls.needs)
                if not (os.path.exists(name) if name.startswith('/') else shutil.which(name))]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)

    def start(self, with_faults=False):
        if self.process is None:
            self.set_up()
        environment = dict(os.environ, LC_ALL='C')
        if with_faults:
            self._faults = self.path('faults')
            with open(self._faults, 'wb') as file:
                file.write(bytes(4096))
            os.chmod(self._faults, 0o644)
            environment |= {'LD_PRELOAD': self.session.fault_library(), 'CULPRIT_FAULT': self._faults}
        become = []
        if self.user and os.geteuid() == 0:
            subprocess.run(['chown', '-R', self.user, self.folder], check=True)
            group = pwd.getpwnam(self.user).pw_gid
            become = ['setpriv', f'--reuid={self.user}', f'--regid={group}', '--clear-groups']
        with open(self.path('log'), 'ab') as log:
            self.process = subprocess.Popen(
                become + self.session.wrap + self.command(), stdin=self.stdin(), stdout=log,
                stderr=self.stderr(log), env=environment, cwd=self.folder, start_new_session=True)
        self.session.running.append(self)
        wait_until(f'start of {self.program} (see {self.path("log")})', self._ready_or_dead)

    def stderr(self, log):
        return log

    def _ready_or_dead(self):
        if self.process.poll() is not None:
            with open(self.path('log'), encoding='utf-8', errors='replace') as log:
                raise Failed(f'{self.program} ended with {self.process.returncode}: {log.read()[-500:]}')
        return self.is_ready()

    def processes(self):
        return descendants(self.process.pid)

    def fault(self, **levels):
        """Sets the given faults, and all others to none."""
        with open(self._faults, 'r+b') as file, mmap.mmap(file.fileno(), 4096) as numbers:
            for i, name in enumerate(FAULTS):
                struct.pack_into('=I', numbers, 4 * i, levels.pop(name, 0))
        if levels:
            raise Failed(f'there are no such faults: {", ".join(levels)}')

    def stop(self):
        if self in self.session.running:
            self.session.running.remove(self)
        if self.process is None or self.process.poll() is not None:
            return
        if self._faults:
            self.fault()
        family = self.processes()
        self.process.send_signal(self.stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                # A process id may be somebody else's by now, but hardly of our session.
                if os.getsid(pid) == self.process.pid or pid == self.process.pid:
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()


def can_connect(port):
    with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), 1):
        return True
    return False

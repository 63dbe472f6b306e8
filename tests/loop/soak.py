# SPDX-License-Identifier: Apache-2.0
"""A watch through everything that goes wrong in production, for some minutes or an hour.

A redis with a name of its own is watched by name while clients ask it, a hundred of
them for something slow. Meanwhile, at moments that follow from a seed, the watch is
killed, the server is killed, the disk is full, the clock jumps. Then: every dump that
was announced is in the corpus or still there, every slow unit of a quiet moment was
reported, the memory did not grow, no kernel program and no changed byte of code is
left, and no client saw an error that a killed server does not explain.
"""

import contextlib
import glob
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import traces_left
from harness import Failed, can_connect, free_port, wait_until
from watched import Watch, recorder_of

SLOW_UNITS = 100
SLOW_S = 0.05
GRACE_S = 3.0       # around whatever happens: nothing is asked of anybody
MOST_WATCH_MB = 150
MOST_RECORDER_MB = 400
DISK_MB = 96


class Client(threading.Thread):
    """Asks all the time; an error counts unless the server was down."""

    def __init__(self, soak, pause):
        super().__init__(daemon=True)
        self._soak = soak
        self._pause = pause
        self.requests = 0
        self.errors = []  # when
        self.start()

    def run(self):
        at = 0
        while not self._soak.over:
            try:
                with socket.create_connection(('127.0.0.1', self._soak.port), 5) as connection:
                    file = connection.makefile('rb')
                    for at in range(at, at + 50):
                        connection.sendall(b'SET k%d %d\r\nGET k%d\r\n' % (at % 200, at, at % 200))
                        if not (file.readline() and file.readline() and file.readline()):
                            raise OSError('closed')
                        self.requests += 1
                        if self._soak.over:
                            return
                        time.sleep(self._pause)
            except OSError:
                self.errors.append(time.monotonic())
                time.sleep(0.2)


class Soak:
    def __init__(self, culprit, folder, seconds, seed):
        self._culprit = culprit
        self._folder = folder
        self._seconds = seconds
        self._random = random.Random(seed)
        self._name = f'soak-{os.getpid()}'
        self._disk = os.path.join(folder, 'disk')
        self._watch = Watch(culprit, self._disk, train_s=8)
        self._watch_process = None
        self._server = None
        self.port = free_port()
        self.over = False
        self._down = []       # [from, to]: the server was not there
        self._disturbed = []  # moments around which reports may be missing
        self._asked = []      # when something slow was asked for, by the calendar
        self._memory = []     # (time, watch, recorder) in MB
        self._events = []

    # ---- the processes

    def _start_server(self):
        with open(os.path.join(self._folder, 'server.log'), 'ab') as log:
            self._server = subprocess.Popen(
                [os.path.join(self._folder, self._name), '--bind', '127.0.0.1', '--port', str(self.port), '--save', '',
                 '--enable-debug-command', 'yes', '--dir', self._folder], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)
        wait_until('start of redis', lambda: can_connect(self.port))

    def _start_watch(self):
        words = [self._culprit, 'watch', '--comm', self._name, '--state', self._watch.state, '--train-for', '8s',
                 '--flight', '4s', '--max-disk', '40MB']
        environment = dict(os.environ, LD_PRELOAD=self._clock_library, CULPRIT_CLOCK=self._clock)
        with open(os.path.join(self._folder, 'watch.log'), 'ab') as log:
            self._watch_process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                   stderr=log, env=environment, start_new_session=True)

    def _watch_said(self):
        with open(os.path.join(self._folder, 'watch.log'), encoding='utf-8', errors='replace') as log:
            return log.read()

    def _until_guarded(self, before):
        def guarded():
            if self._watch_process.poll() is not None:
                raise Failed(f'the watch ended with {self._watch_process.returncode}: {self._watch_said()[-500:]}')
            return self._watch_said().count('watching process') > before and recorder_of(self._watch_process.pid)
        wait_until(f'guarding (see {self._folder}/watch.log)', guarded, 120)

    # ---- what goes wrong

    def _kill_watch(self):
        before = self._watch_said().count('watching process')
        self._watch_process.kill()
        self._watch_process.wait()
        time.sleep(self._random.uniform(0, 3))
        self._start_watch()
        self._until_guarded(before)

    def _kill_server(self):
        before = self._watch_said().count('watching process')
        begin = time.monotonic()
        self._server.kill()
        self._server.wait()
        time.sleep(self._random.uniform(0, 2))
        self._start_server()
        self._down.append((begin, time.monotonic() + 1))
        self._until_guarded(before)

    def _fill_disk(self):
        filler = os.path.join(self._disk, 'filler')
        with contextlib.suppress(OSError), open(filler, 'wb', buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        with contextlib.suppress(OSError):
            self._ask_slowly()
        time.sleep(self._random.uniform(3, 6))
        os.remove(filler)

    def _jump(self):
        with open(self._clock, 'r+b') as file:
            file.write(struct.pack('=q', self._random.choice([-86400 * 3, -3600, 0, 3600, 86400 * 40])))

    # ---- the work

    def _ask_slowly(self):
        with socket.create_connection(('127.0.0.1', self.port), 5) as connection:
            if self._random.random() < 0.5:
                connection.sendall(b'DEBUG SLEEP %.3f\r\n' % SLOW_S)
            else:
                script = b"local t = redis.call('TIME'); local e = t[1] * 1000000 + t[2] + %d; " \
                         b"repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > e" % (1e6 * SLOW_S)
                connection.sendall(b'*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n' % (len(script), script))
            connection.makefile('rb').readline()

    def _measure(self):
        recorder = recorder_of(self._watch_process.pid)
        self._memory.append((time.monotonic(), traces_left.resident_mb(self._watch_process.pid),
                             traces_left.resident_mb(recorder) if recorder else 0.0))

    def _mishaps(self):
        """Moments between which nothing happens, and what happens then."""
        kinds = [('watch killed', self._kill_watch), ('server killed', self._kill_server),
                 ('disk full', self._fill_disk), ('clock set', self._jump)]
        count = max(4, round(self._seconds / 40))
        names = [kinds[i % len(kinds)] for i in range(count)]
        self._random.shuffle(names)
        return names

    def _set_up(self):
        os.mkdir(self._disk)
        done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_MB}m', 'tmpfs', self._disk], check=False,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f'no small disk: {done.stderr.strip()}')
        shutil.copy(os.path.realpath(shutil.which('redis-server')), os.path.join(self._folder, self._name))
        self._clock = os.path.join(self._folder, 'clock')
        with open(self._clock, 'wb') as file:
            file.write(bytes(8))
        self._clock_library = os.path.join(self._folder, 'libclock.so')
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'clock.c')
        subprocess.run(['cc', '-O2', '-shared', '-fPIC', '-o', self._clock_library, source], check=True)

    def run(self):
        """What went wrong that must not; nothing if all is well."""
        self._set_up()
        self._start_server()
        clients = [Client(self, 0.003), Client(self, 0.005)]
        try:
            self._start_watch()
            self._until_guarded(0)
            self._see_that_checks_see()
            begin = time.monotonic()
            self._work(begin)
            self.over = True
            return self._judge(clients)
        finally:
            self.over = True
            self._tear_down()

    def _see_that_checks_see(self):
        """While the server is guarded its code is changed, and kernel programs are held."""
        if not traces_left.changed_code(self._server.pid):
            raise Failed('no changed code is seen although the server is guarded')
        if not traces_left.held_programs():
            raise Failed('no kernel program is seen although a recorder runs')

    def _work(self, begin):
        mishaps = self._mishaps()
        every = self._seconds / (len(mishaps) + 1)
        next_mishap = begin + every
        next_slow = begin + GRACE_S
        while time.monotonic() - begin < self._seconds:
            now = time.monotonic()
            if mishaps and now >= next_mishap:
                name, cause = mishaps.pop()
                self._events.append(name)
                self._disturbed.append([now, now])
                cause()
                self._disturbed[-1][1] = time.monotonic()
                next_mishap += every
            elif now >= next_slow and len(self._asked) < SLOW_UNITS:
                self._ask_slowly()
                self._asked.append(now)
                next_slow = now + self._seconds / SLOW_UNITS / 1.3
            self._measure()
            time.sleep(0.2)

    # ---- the verdict

    def _quiet(self, moment):
        return all(moment < begin - GRACE_S or moment > end + GRACE_S for begin, end in self._disturbed)

    def _judge(self, clients):
        wrong = []
        pid = self._server.pid
        time.sleep(2)
        self._watch_process.send_signal(signal.SIGTERM)
        self._watch_process.wait(180)
        # The next one takes in what was left.
        subprocess.run([self._culprit, 'watch', '--comm', 'nobody-has-this', '--state', self._watch.state, '--for',
                        '1s'], check=False, capture_output=True)
        wrong += self._judge_dumps()
        slow = [row for row in self._watch.reports() if row['wall_ns'] > 0.8e9 * SLOW_S]
        asked = sum(self._quiet(moment) for moment in self._asked)
        if len(slow) < asked:
            wrong.append(f'{asked} slow units at quiet moments, {len(slow)} reported')
        wrong += self._judge_memory()
        changed = traces_left.changed_code(pid)
        if changed:
            wrong.append('code differs from its file: ' + ' '.join(changed))
        with contextlib.suppress(Failed):
            wait_until('end of kernel programs', lambda: not traces_left.forsaken_programs(), 10)
        left = traces_left.forsaken_programs()
        if left:
            wrong.append('kernel programs that nobody holds: ' + ' '.join(left))
        unexplained = [error for client in clients for error in client.errors
                       if not any(begin - 0.5 <= error <= end + 6 for begin, end in self._down)]
        if unexplained:
            wrong.append(f'{len(unexplained)} errors of clients while the server was up')
        requests = sum(client.requests for client in clients)
        print(f'{requests} requests, {sum(len(c.errors) for c in clients)} errors, {len(unexplained)} unexplained; '
              f'{len(self._asked)} slow ones asked, {asked} at quiet moments, {len(slow)} reported; '
              f'{", ".join(self._events)}; watch at most {max(m[1] for m in self._memory):.0f} MB, '
              f'recorder {max(m[2] for m in self._memory):.0f} MB', flush=True)
        return wrong

    def _judge_dumps(self):
        """Each announced dump is a trace of the corpus, was evicted, or is still in its folder."""
        with open(os.path.join(self._watch.state, 'recorder.log'), encoding='utf-8', errors='replace') as log:
            announced = set(re.findall(r'^wrote (\S+): on request', log.read(), re.MULTILINE))
        there = len(self._watch.traces()) + len(glob.glob(os.path.join(self._watch.state, 'dumps', '*.ctrace')))
        evicted = sum(int(n) for n in re.findall(r'(\d+) evicted', self._watch_said()))
        print(f'{len(announced)} dumps announced, {there} there, {evicted} evicted', flush=True)
        if there + evicted < len(announced):
            return [f'{len(announced)} dumps were announced, {there} are there, {evicted} were evicted']
        return []

    def _judge_memory(self):
        wrong = []
        for column, name, most in ((1, 'watch', MOST_WATCH_MB), (2, 'recorder', MOST_RECORDER_MB)):
            sizes = [row[column] for row in self._memory if row[column] > 0]
            if sizes and max(sizes) > most:
                wrong.append(f'the {name} took {max(sizes):.0f} MB')
            third = len(sizes) // 3
            if third and max(sizes[-third:]) > 1.3 * max(sizes[third:2 * third]) + 8:
                wrong.append(f'the {name} grew from {max(sizes[third:2 * third]):.0f} to {max(sizes[-third:]):.0f} MB')
        return wrong

    def _tear_down(self):
        for process in (self._watch_process, self._server):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        # A recorder that was told to end may still hold a file.
        for _ in range(20):
            if subprocess.run(['umount', self._disk], check=False, capture_output=True).returncode == 0:
                break
            time.sleep(0.5)

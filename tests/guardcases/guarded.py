# SPDX-License-Identifier: Apache-2.0
"""Servers under `culprit guard`: trained once, then run with the guards.

A Subject is a server with the loads that it normally has. Trained holds the profile
of one; guarded() starts it with guards and gives the reports when it has ended.
"""

import contextlib
import dataclasses
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
import time
from typing import Any, Callable

from harness import Failed

LOG_MB = '400'
MEASURE_S = 15
LEARN_WITHIN_S = 240
END_WITHIN_S = 60


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    server: type
    loads: tuple                        # (server, seconds): what it is trained with
    connect: Callable                   # (server) -> a client of clients.py
    settings: dict = dataclasses.field(default_factory=dict)
    prepare: Callable | None = None     # (server), before all loads
    on_disk: bool = True                # what it prepares stays when the server ends
    trace_s: int = 8                    # traced so long, with start and all loads in it, or until LOG_MB
    faults: bool = False                # with the library of tests/realbugs/fault.c


class Background:
    """The loads of a subject, one after the other, while something else happens."""

    def __init__(self, server, loads):
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(server, loads))
        self._thread.start()

    def _run(self, server, loads):
        while loads and not self._over.is_set():
            for load in loads:
                if not self._over.is_set():
                    # The server may end in the midst of it.
                    with contextlib.suppress(OSError, Failed):
                        load(server, 0.5)

    def stop(self):
        self._over.set()
        self._thread.join()


@dataclasses.dataclass
class Outcome:
    """What one guarded run said."""
    reports: list
    notes: str
    units: Any = None  # [(begin_ns, end_ns, type)] of sampled units, if asked for

    def fact(self, name):
        found = re.search(rf'^  {name} +(.*)$', self.notes, re.MULTILINE)
        return found.group(1) if found else ''

    def unit_count(self):
        found = re.match(r'([0-9.]+) ?([kM]?)', self.fact('units'))
        return float(found.group(1)) * {'': 1, 'k': 1e3, 'M': 1e6}[found.group(2)] if found else 0.0


class Trained:
    """A subject's server, which is set up once and started as often as wanted, and its profile."""

    def __init__(self, culprit, session, subject, folder=None):
        self.culprit = os.path.abspath(culprit)
        self.subject = subject
        self.folder = os.path.abspath(folder or session.folder)
        os.makedirs(self.folder, exist_ok=True)
        self.profile = os.path.join(self.folder, subject.name + '.cguard')
        self._session = session
        self._server = None
        self._runs = itertools.count()
        self._log_begin = 0

    def _start(self, *wrap):
        """Started as WRAP... COMMAND...; the data of `prepare` is there."""
        if self._server is None:
            self._server = self.subject.server(self._session, **self.subject.settings)
            if self.subject.prepare and self.subject.on_disk:
                # Not while functions are traced: that is for the loads.
                self._start()
                self.subject.prepare(self._server)
                self._server.stop()
        server = self._server
        self._session.wrap = list(wrap)
        log = server.path('log')
        self._log_begin = os.path.getsize(log) if os.path.exists(log) else 0
        server.start(with_faults=self.subject.faults)
        if self.subject.prepare and not self.subject.on_disk and wrap:
            self.subject.prepare(server)
        return server

    def _end(self, what):
        server = self._server
        server.process.send_signal(server.stop_signal)
        try:
            server.process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired as late:
            raise Failed(f'{what} of {self.subject.name} does not end') from late
        finally:
            server.stop()

    def said(self):
        """What the server and culprit wrote since the start."""
        with open(self._server.path('log'), 'rb') as file:
            file.seek(self._log_begin)
            return file.read().decode(errors='replace')

    # ---- training

    def train(self, exercise, measure_s=MEASURE_S):
        """`exercise(server, client)` is done beside the loads, again and again."""
        written = f'trained-{next(self._runs)}.cguard'
        server = self._start(self.culprit, 'guard', 'train', '--for', '0s', '--trace-for', f'{self.subject.trace_s}s',
                             '--log-mb', LOG_MB, '-o', written, '--')
        background = Background(server, self.subject.loads)
        try:
            self._exercise(server, exercise, lambda: 'found ' in self.said(), LEARN_WITHIN_S)
            end = time.monotonic() + measure_s
            self._exercise(server, exercise, lambda: time.monotonic() > end, 2 * measure_s)
        finally:
            background.stop()
        self._end('training')
        if not os.path.exists(server.path(written)):
            raise Failed(f'training of {self.subject.name}: {self.said()[-800:]}')
        shutil.copy(server.path(written), self.profile)
        os.chmod(self.profile, 0o644)

    def _exercise(self, server, exercise, over, within_s):
        deadline = time.monotonic() + within_s
        client = self.subject.connect(server)
        while not over():
            if time.monotonic() > deadline:
                raise Failed(f'training of {self.subject.name} learned nothing within {within_s} s')
            exercise(server, client)
            time.sleep(0.01)
        client.close()

    def facts(self):
        """What guard show says of the profile."""
        done = subprocess.run([self.culprit, 'guard', 'show', '--json', self.profile], check=True,
                              capture_output=True, text=True)
        return json.loads(done.stdout)

    def keep(self, what, data):
        """Beside the profile, for whoever wants to know why."""
        with open(os.path.join(self.folder, f'{self.subject.name}.{what}.json'), 'w', encoding='utf-8') as file:
            json.dump(data, file)

    # ---- guarding

    @contextlib.contextmanager
    def plain(self):
        """The same without guards."""
        server = self._start()
        if self.subject.prepare and not self.subject.on_disk:
            self.subject.prepare(server)
        try:
            yield server
        finally:
            server.stop()

    @contextlib.contextmanager
    def guarded(self, all_units=False, flags=()):
        """A running server with guards and an Outcome, which is filled when it has ended."""
        outcome = Outcome([], '')
        run = next(self._runs)
        store, units = f'slow-{run}', f'units-{run}.ctrace'
        more = ['--units', units, '--sample-every', '1'] if all_units else []
        server = self._start(self.culprit, 'guard', 'run', self.profile, '--store', store, *more, *flags, '--')
        try:
            yield server, outcome
            if self.subject.faults:
                server.fault()
            self._end('guarding')
        finally:
            server.stop()
        outcome.notes = self.said()
        if not re.search('^guarded$', outcome.notes, re.MULTILINE):
            raise Failed(f'{self.subject.name} with guards: {outcome.notes[-800:]}')
        outcome.reports = self._reports(server.path(store))
        if all_units:
            outcome.units = self._units(server.path(f'units-{run}'), server.path(units))

    @staticmethod
    def _reports(store):
        """One for each slow unit: what is said of its end replaces that it hangs."""
        reports = []
        hanging = {}
        for path in sorted(glob.glob(os.path.join(store, '*'))):
            with open(path, encoding='utf-8') as file:
                for report in map(json.loads, file):
                    before = hanging.pop(report['tid'], None) if report['state'] == 'hung' else None
                    if before:
                        report['stacks'] += before['stacks']
                        reports.remove(before)
                    if report['state'] == 'hangs':
                        hanging[report['tid']] = report
                    reports.append(report)
        return reports

    def _units(self, corpus, trace):
        def ask(*words):
            done = subprocess.run([self.culprit, 'corpus', *words], check=True, capture_output=True, text=True)
            return done.stdout
        ask('add', corpus, trace)
        units = []
        for scenario in json.loads(ask('list', corpus, '--scenarios', '--json'))['scenarios']:
            name = scenario['name'].partition(': ')[2]
            rows = json.loads(ask('list', corpus, '--instances', scenario['name'], '--json'))['instances']
            units += [(row['t0_ns'], row['t1_ns'], name) for row in rows]
        return sorted(units)

# SPDX-License-Identifier: Apache-2.0
"""A case of tests/realbugs through the whole loop, unattended, and what comes of it.

The server starts under culprit watch, is learnt while its healthy loads run, goes on
healthily for a while, then the trigger comes. What the inbox shows within two minutes
is held against the functions that are known to be the answer.
"""

import contextlib
import dataclasses
import fnmatch
import time

from drive import Drive
from harness import Failed
from watched import TRAINED_WITHIN_S, Watch, keep_loading, under_watch

WITHIN_S = 120
SETTLING_S = 4
HEALTHY_S = 6
SETTLED_S = 12  # after the answer is there: does it stay?

# Where tests/realbugs asks inference alone, or says that nothing shows in system calls, or
# where the function that it names ends in a jump to another.
ANSWERS = {
    'sqlite-cpu': ('sqlite3_step', 'sqlite3VdbeExec'),
    'nginx-regex': ('*pcre2_match*', 'ngx_regex_exec*', 'ngx_http_regex_exec', 'ngx_http_core_find_location'),
    'nginx-send-sleeps': ('ngx_linux_sendfile_chain', 'ngx_writev', 'ngx_http_write_filter', 'ngx_output_chain'),
    'postgres-cpu': ('standard_ExecutorRun', 'ExecProcNode*', 'ExecNestLoop*', 'ExecAgg*', 'advance_aggregates',
                     'ExecInterpExpr*', 'ExecutePlan', 'fetch_input_tuple', 'FunctionNext'),
    'redis-script': ('evalGenericCommand', 'luaCallFunction', 'lua_pcall'),
    'mariadb-cpu': ('*Item_func_benchmark*', '*Item_func_md5*', '*my_md5*'),
}
# Where a program's own functions have no names, the faulty call itself is the answer, of the
# library that spoils it or of the C library behind that.
UNNAMED = {
    'accept': ('libc-fault.so!*', 'libc.so.6!*accept*'),
    'receive': ('libc-fault.so!*', 'libc.so.6!*read', 'libc.so.6!*recv*'),
    'send': ('libc-fault.so!*', 'libc.so.6!*send*', 'libc.so.6!*write*'),
}


def answers_of(case):
    named = case.loops + case.fix + ANSWERS.get(case.name, ())
    return named or UNNAMED[next(iter(case.fault)).partition('_')[0]]


def has_answer(frames, wanted):
    for frame in frames:
        function = frame.rpartition('!')[2]
        if any(fnmatch.fnmatchcase(function, glob) or fnmatch.fnmatchcase(frame, glob) for glob in wanted):
            return True
    return False


def frames_of(item):
    """The functions a finding shows: what its patterns share, its chain, its sentence."""
    return item['common'] + item['chain'] + item['sentence'].replace(',', ' ').replace(';', ' ').split()


def place(items, wanted):
    """The place in the inbox of the first finding that has the answer, from 1; 0: none has."""
    for i, item in enumerate(items):
        if has_answer(frames_of(item), wanted):
            return i + 1
    return 0


class Share:
    """CPU time of the watch and its recorder per CPU time of the server, over a time."""

    def __init__(self, server):
        self._server = server
        self._begin = server.observers_cpu_s()
        self._begin_s = time.monotonic()

    def end(self):
        watch_s, server_s = (now - then for now, then in zip(self._server.observers_cpu_s(), self._begin))
        # As the recorder's budget has it: who mostly waits counts as half a CPU.
        against_s = max(server_s, (time.monotonic() - self._begin_s) / 2)
        return watch_s / against_s if against_s > 0 else 0.0


class WatchedDrive(Drive):
    """The bad time without the restart that some cases begin it with."""

    @contextlib.contextmanager
    def trouble_here(self):
        case = self.case
        self.case = dataclasses.replace(case, wrong=None)
        try:
            with self.trouble() as load:
                yield load
        finally:
            self.case = case


class Trial:
    """One case; result() has what the table shows."""

    def __init__(self, culprit, session, case, folder, train_s):
        self._case = case
        self._watch = Watch(culprit, folder, train_s)
        watched = dataclasses.replace(case, server=under_watch(case.server, self._watch))
        self._drive = WatchedDrive(session, watched)
        self._wanted = answers_of(case)
        self.row = {'case': case.name, 'slow_before': 0, 'reported_s': None, 'found_s': None, 'rank': 0,
                    'last_rank': 0, 'first': '', 'overhead_before': 0.0, 'overhead_during': 0.0}

    def _until_guarded(self):
        """Healthy loads, one after the other, while the watch learns."""
        case, server = self._case, self._drive.server
        loads = [case.normal, case.other]
        turn = [0]
        def load(to, seconds):
            turn[0] += 1
            return loads[turn[0] % 2](to, seconds)
        if not keep_loading(load, server, TRAINED_WITHIN_S, server.guarded):
            raise Failed(f'not guarded within {TRAINED_WITHIN_S} s: {server.watch_said()[-500:]}')

    def _times(self, name, tally):
        ordered = sorted(tally.latencies)
        self.row[name] = {'requests': len(ordered), 'errors': tally.errors, 'mean_ms': tally.mean_ms(),
                          'p99_ms': 1000 * ordered[int(0.99 * (len(ordered) - 1))] if ordered else 0.0,
                          'longest_ms': tally.worst_ms()}

    def _healthy(self):
        server = self._drive.server
        # The recorder has read its tables by then.
        self._case.normal(server, SETTLING_S)
        share = Share(server)
        self._times('normal', self._case.normal(server, HEALTHY_S))
        self.row['overhead_before'] = share.end()
        self.row['slow_before'] = len(self._watch.reports())

    def _trouble(self):
        if self._case.wrong:
            # Another server of the same program: its profile is known.
            self._drive.restart(self._case.wrong)
            self._until_guarded()
        row, watch, wanted = self.row, self._watch, self._wanted
        before = len(watch.reports())
        begin, begin_unix = time.monotonic(), time.time()
        def look():
            if row['reported_s'] is None and len(watch.reports()) > before:
                row['reported_s'] = time.monotonic() - begin
            row['last_rank'] = place(watch.inbox(begin_unix), wanted)
            if row['last_rank'] and row['found_s'] is None:
                row['found_s'] = time.monotonic() - begin
                row['rank'] = row['last_rank']
            if row['found_s'] is None:
                return False
            return time.monotonic() - begin > row['found_s'] + SETTLED_S
        with self._drive.trouble_here() as load:
            share = Share(self._drive.server)
            tallies = []
            def loaded(server, seconds):
                tallies.append(load(server, seconds))
            keep_loading(loaded, self._drive.server, WITHIN_S, look)
            row['overhead_during'] = share.end()
            for tally in tallies[1:]:
                tallies[0].add(tally)
            self._times('bad', tallies[0])
        row['slow_during'] = len(watch.reports()) - before

    def run(self):
        with self._drive:
            self._until_guarded()
            self._healthy()
            self._trouble()
            items = self._watch.inbox()
            self._drive.server.stop()
            self.row['said'] = self._drive.server.watch_said()[-2000:]
        self.row['items'] = [{'name': item['name'], 'sentence': item['sentence'], 'common': item['common'], 'chain': item['chain'], 'slow_ns': item['slow_ns']}
                             for item in items[:8]]
        self.row['first'] = items[0]['name'] if items else ''
        self.row['traces'] = len(self._watch.traces())
        return self.row

# SPDX-License-Identifier: Apache-2.0
"""Inference held against the cases: recordings of each, and what it makes of them.

record_case() writes into a folder, with system calls and user stacks:

    staging[-N].ctrace    what the profile is made of
    normal.ctrace         the healthy load, the side to compare with
    again, more, other    the same load again, with twice the clients, another healthy one
    other-again           that once more, to be held against both normal and other
    buggy.ctrace          the bad time

Inference never looks at the stacks of a trace when it ranks; they give a verdict of
their own beside, which is the oracle where a server's symbols have no names.
"""

import contextlib
import fnmatch
import json
import os
import signal
import socket
import subprocess
import time

from drive import Drive
from harness import Failed, wait_until

HEALTHY = ('again', 'more', 'other', 'other-again')


def answers(recorder):
    """Does the recorder serve its control socket? It does so once it records."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as control:
        control.settimeout(0.5)
        control.connect(f'/run/culprit/record-{recorder}.sock')
        control.sendall(b'are you there\n')
        return bool(control.recv(100))
    return False


class Culprit:
    def __init__(self, binary):
        self.binary = binary

    def run(self, *arguments):
        """Its output as text, and the CPU seconds it took."""
        before = os.times()
        done = subprocess.run([self.binary, *arguments], check=False, capture_output=True, text=True)
        after = os.times()
        if done.returncode != 0:
            raise Failed(f'culprit {" ".join(arguments)}: {done.stderr.strip()[-400:]}')
        seconds = after.children_user - before.children_user + after.children_system - before.children_system
        return done.stdout, seconds

    def can_record(self, folder):
        """None, or why not."""
        done = subprocess.run([self.binary, 'record', '--tier', 'bpf', '--syscalls', '-o',
                               os.path.join(folder, 'probe.ctrace'), '--force', '--', 'true'],
                              check=False, capture_output=True, text=True)
        return None if done.returncode == 0 else done.stderr.strip().splitlines()[0]

    def _start_recorder(self, pids, path, log, more):
        flags = [*more, *[word for pid in pids for word in ('--pid', str(pid))]]
        if os.path.exists(path):
            os.remove(path)
        with open(log, 'wb') as said:
            recorder = subprocess.Popen([self.binary, 'record', '--syscalls', '--budget', '0', '-F', '0',
                                         '-o', path, *flags], stdout=said, stderr=said)
        wait_until(f'start of the recorder (see {log})',
                   lambda: recorder.poll() is not None or answers(recorder.pid))
        return recorder

    def record(self, server, path, load, flags=()):
        """Records the server's processes while load() runs; what load() returned."""
        log = path + '.log'
        # A process that is about to end when they are listed is tried without.
        for _ in range(5):
            recorder = self._start_recorder(server.processes(), path, log, flags)
            if recorder.poll() is None:
                break
            time.sleep(0.3)
        try:
            tally = load() if recorder.poll() is None else None
        finally:
            if recorder.poll() is None:
                recorder.send_signal(signal.SIGINT)
            recorder.wait()
        if recorder.returncode not in (0, 130):
            with open(log, encoding='utf-8', errors='replace') as said:
                raise Failed(f'the recorder ended with {recorder.returncode}: {said.read()[-400:]}')
        return tally


def record_case(culprit, session, case, folder, seconds, brief=False):
    os.makedirs(folder, exist_ok=True)
    said = {}
    with Drive(session, case) as drive:
        def record(name, load):
            flags = drive.server.profile_flags if name.startswith('staging') else ()
            tally = culprit.record(drive.server, os.path.join(folder, name + '.ctrace'), load, flags)
            said[name] = {'text': str(tally), 'mean_ms': tally.mean_ms(), 'requests': len(tally.latencies)}
        record('staging', lambda: drive.profiled(seconds))
        record('normal', lambda: drive.healthy(case.normal, seconds))
        record('again', lambda: drive.healthy(case.normal, seconds))
        if not brief:
            record('more', lambda: drive.healthy(case.normal, seconds, 2))
            record('other', lambda: drive.healthy(case.other, seconds))
            record('other-again', lambda: drive.healthy(case.other, seconds))
        with drive.trouble() as load:
            record('buggy', lambda: load(drive.server, seconds))
        if case.staged:
            drive.restart(case.staged)
            record('staging-2', lambda: drive.profiled(seconds))
    with open(os.path.join(folder, 'loads.json'), 'w', encoding='utf-8') as file:
        json.dump(said, file, indent=1)


def names_of(row):
    return [row['function'], *row['co_owners']]


def place(rows, wanted):
    """The place of the first row that has one of the functions, from 1; 0: none has."""
    for i, row in enumerate(rows):
        for label in names_of(row):
            function = label.rpartition('!')[2]
            if any(fnmatch.fnmatchcase(function, glob) or label == glob for glob in wanted):
                return i + 1
    return 0


def rows_of(case, answer):
    return answer['time'] if case.expect == 'time' else answer['functions']


def judge_case(culprit, case, folder):
    """What inference says of the recordings, as a dictionary."""
    def trace(name):
        return os.path.join(folder, name + '.ctrace')
    staging = [trace(name) for name in ('staging', 'staging-2') if os.path.exists(trace(name))]
    profile = os.path.join(folder, 'app.cprof')
    _, profile_s = culprit.run('profile', *staging, '--force', '-o', profile)

    # All kinds of healthy work that were recorded; the same load alone for comparison.
    one = [trace('normal')]
    usual = one + [trace('other')] if os.path.exists(trace('other')) else one

    def infer(name, *flags, normals=one):
        against = [word for path in normals for word in ('--against', path)]
        text, seconds = culprit.run('infer', trace(name), '--profile', profile, *against, '--json', *flags)
        return json.loads(text), seconds
    answer, infer_s = infer('buggy', normals=usual)
    alone, _ = infer('buggy')
    paper, _ = infer('buggy', '--method', 'paper')
    rows = rows_of(case, answer)
    oracle = answer['stacks'] if case.expect != 'time' else []
    loops = case.loops or tuple(names_of(oracle[0]) if oracle else ())
    result = {
        'case': case.name, 'half': case.half, 'expect': case.expect, 'profiled': answer['profiled'],
        'named': answer['named'], 'rows': len(answer['functions']), 'first': rows[0]['function'] if rows else '',
        'loop': place(rows, loops), 'alone': place(rows_of(case, alone), loops), 'fix': place(rows, case.fix), 'paper': place(paper['functions'], loops),
        'unknown': place(answer['functions'], ['[[]not in profile]']),
        'oracle': place(answer['functions'], names_of(oracle[0])) if oracle else 0,
        'oracle_first': oracle[0]['function'] if oracle else '',
        'profile_s': profile_s, 'infer_s': infer_s, 'syscalls': answer['syscalls'],
        'warnings': answer['warnings'], 'null_rows': answer['null_rows'],
    }
    for name in HEALTHY:
        if not os.path.exists(trace(name)):
            result[name] = None
            continue
        healthy, _ = infer(name, normals=usual if name == 'other-again' else one)
        result[name] = len(healthy['functions'])
        result[name + '_first'] = [row['function'] for row in healthy['functions'][:3]]
        result[name + '_warned'] = bool(healthy['warnings'])
    result['met'] = is_met(case, result)
    return result


def is_met(case, result):
    if case.expect == 'nobody':
        return result['rows'] == 0
    if case.expect == 'unknown':
        return result['unknown'] == 1
    return 1 <= result['loop'] <= 3

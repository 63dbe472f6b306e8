# SPDX-License-Identifier: Apache-2.0
"""Holds what guards reported against what was done.

A case is done ACTS times, each in a window of time that nothing else slow happens in.
The right type of a slow request is that of the same request when it is quick: a run
before, with nothing else to do, says which types its units have, on a connection that
had others before, and as the first of one.
"""

import collections
import fnmatch
import re
import time

from guarded import Background
from harness import Failed

ACTS = 3
NAMING_ROUNDS = 40
FIRST_ROUNDS = 10
WITHIN_FRAMES = 8


def now_ns():
    return time.monotonic_ns()


def matches(frame, patterns):
    function = frame.rpartition('!')[2]
    return any(fnmatch.fnmatchcase(frame, p) or fnmatch.fnmatchcase(function, p) for p in patterns)


def depth_of(report, roots):
    """How many frames above the root cause the reported stack ends; None: it is not in it."""
    best = None
    for stack in report['stacks']:
        for i, frame in enumerate(stack['frames']):
            if matches(frame['frame'], roots) and (best is None or i < best):
                best = i
                break
    return best


def quick_types(trained, cases):
    """case name -> the types that its quick request has."""
    quick = [case for case in cases if case.small]
    windows = collections.defaultdict(list)   # case name -> of requests on one connection
    firsts = collections.defaultdict(list)    # the same, each the first of its connection
    with trained.guarded(all_units=True) as (server, outcome):
        client = trained.subject.connect(server)
        for case in quick:
            for _ in range(NAMING_ROUNDS):
                windows[case.name].append(window_of(case, server, client))
                time.sleep(0.002)
        for case in quick:
            for _ in range(FIRST_ROUNDS):
                fresh = trained.subject.connect(server)
                firsts[case.name].append(window_of(case, server, fresh))
                hand_over(3 * [case], server, fresh)
                fresh.close()
        hand_over(3 * NAMING_ROUNDS * quick, server, client)
        client.close()
    return {case.name: sorted(set(often_in(windows[case.name], outcome.units, case)) |
                              set(often_in(firsts[case.name], outcome.units, case))) for case in cases}


def window_of(case, server, client):
    begin = now_ns()
    case.small(server, client)
    return begin, now_ns()


def hand_over(cases, server, client):
    """Threads hand their samples over in batches, when they work on."""
    time.sleep(0.1)
    for case in cases:
        case.small(server, client)


def often_in(windows, units, case):
    """The types of units in a fifth of the windows."""
    tally = collections.Counter()
    for begin, end in windows:
        tally.update({name for start, _, name in units if begin <= start <= end})
    often = [name for name, n in tally.items() if 5 * n >= len(windows)]
    # What is done after all handlers counts where the case says so, or where there is nothing else.
    handled = [name for name in often if '(tail)' not in name]
    return often if case.in_tail or not handled else handled


def do_acts(server, trained, case, windows):
    client, other = trained.subject.connect(server), trained.subject.connect(server)
    try:
        for _ in range(ACTS):
            if case.ready:
                case.ready(server, client, other)
            time.sleep(0.05)
            begin = now_ns()
            case.act(server, client, other)
            windows[case.name].append((begin, now_ns()))
            if case.after:
                case.after(server, client, other)
            time.sleep(0.1)
    finally:
        if trained.subject.faults:
            server.fault()
        client.close()
        other.close()


def judge_subject(trained, cases, normal_s):
    """Rows of the table, one a case, and what the normal load did."""
    types = quick_types(trained, cases)
    windows = collections.defaultdict(list)
    with trained.guarded() as (server, outcome):
        background = Background(server, trained.subject.loads)
        try:
            time.sleep(normal_s)
            quiet_until = now_ns()
            for case in cases:
                if not case.alone:
                    do_acts(server, trained, case, windows)
        finally:
            background.stop()
        for case in cases:
            if case.alone:
                do_acts(server, trained, case, windows)
    trained.keep('reports', {'reports': outcome.reports, 'windows': windows, 'notes': outcome.notes})
    rows = [judge_case(case, outcome.reports, windows[case.name], types[case.name]) for case in cases]
    normal = [r for r in outcome.reports if r['begin_ns'] < quiet_until]
    return rows, {'subject': trained.subject.name, 'units': outcome.unit_count(),
                  'hits_per_unit': outcome.fact('hits per unit'), 'normal_alarms': len(normal),
                  'withdrawn': outcome.fact('withdrawn')}


def nested(reports):
    """How many report what another one reports: two units of a thread at the same time."""
    count = 0
    for report in reports:
        begin, end = report['begin_ns'], report['begin_ns'] + report['wall_ns']
        count += any(other is not report and other['tid'] == report['tid'] and other['begin_ns'] <= begin
                     and other['begin_ns'] + other['wall_ns'] >= end for other in reports)
    return count


def covers(report, begin, end):
    """Whether the unit is most of what the client waited for."""
    overlap = min(end, report['begin_ns'] + report['wall_ns']) - max(begin, report['begin_ns'])
    return 2 * overlap >= end - begin


def plain_name(type_name):
    """Without the number that tells types of the same functions apart."""
    return re.sub(r' #\d+$', '', type_name)


def judge_case(case, reports, windows, quick):
    right_types = {plain_name(name) for name in quick}
    reported, found, right, again, others = 0, 0, 0, 0, 0
    depths, named, ratios = [], collections.Counter(), []
    for begin, end in windows:
        mine = [r for r in reports if r['begin_ns'] <= end and r['begin_ns'] + r['wall_ns'] >= begin]
        rooted = [(r, depth_of(r, case.roots)) for r in mine]
        told = [(r, d) for r, d in rooted if d is not None]
        others += len(mine) - len(told)
        reported += bool(told) or any(covers(r, begin, end) for r in mine)
        if not told:
            continue
        found += 1
        again += nested(mine)
        # The loads beside it may be slow for the same cause.
        report, depth = max(told, key=lambda pair: (plain_name(pair[0]['type']) in right_types, pair[0]['counted_ns']))
        depths.append(depth)
        named[report['type']] += 1
        right += plain_name(report['type']) in right_types
        ratios.append(report['counted_ns'] / report['threshold_ns'])
    return {
        'case': case.name, 'subject': case.subject.name, 'unseen': case.unseen, 'acts': len(windows),
        'reported': reported, 'found': found,
        'right_type': right, 'depth': max(depths, default=None), 'again': again, 'others': others,
        'type': named.most_common(1)[0][0] if named else '', 'quick_types': quick,
        'ratio': round(min(ratios), 1) if ratios else None}


def sound(rows):
    """What --strict asks for."""
    if not rows:
        raise Failed('no case was judged')
    found = sum(r['found'] == r['acts'] and r['depth'] <= WITHIN_FRAMES for r in rows)
    return 10 * found >= 9 * len(rows) and not any(r['again'] for r in rows)

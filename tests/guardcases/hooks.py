# SPDX-License-Identifier: Apache-2.0
"""What happens to a slow unit after it was found: --store, --on-violation, --flight."""

import contextlib
import glob
import json
import os
import signal
import subprocess
import time

import slow
import verdict
from harness import Failed, Session, wait_until

CASE = slow.BY_NAME['redis-watch']
HOOK = 'printf "%s" "$CULPRIT_REPORT" >{0}.part && printf "%s" "$CULPRIT_TYPE" >{0}.type && mv {0}.part {0}'


@contextlib.contextmanager
def flight_recorder(culprit, folder):
    """The name its dumps begin with; None where nothing can be recorded."""
    trace = os.path.join(folder, 'flight.ctrace')
    with open(os.path.join(folder, 'flight.log'), 'w+', encoding='utf-8') as log:
        recorder = subprocess.Popen([culprit, 'record', '--system', '--flight', '30s', '-o', trace], stdout=log,
                                    stderr=log)
        time.sleep(3)
        if recorder.poll() is not None:
            log.seek(0)
            print(f'--flight: left out, {log.read().strip()[:200]}')
            yield None
            return
        try:
            yield os.path.join(folder, 'flight-')
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(60)


def instances(culprit, folder, traces):
    """The scenarios of dumped traces."""
    corpus = os.path.join(folder, 'dumped')
    subprocess.run([culprit, 'corpus', 'add', corpus, *traces], check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run([culprit, 'corpus', 'list', corpus, '--scenarios', '--json'], check=True,
                          capture_output=True, text=True).stdout
    return [scenario['name'] for scenario in json.loads(said)['scenarios']]


def wrong(trained, folder):
    """What is not as it should be."""
    hook = os.path.join(folder, 'hook')
    flags = ['--on-violation', HOOK.format(hook), '--pause', '60s', '--flight']
    faults = []
    with flight_recorder(trained.culprit, folder) as dumps:
        with trained.guarded(flags=flags) as (server, outcome):
            client = trained.subject.connect(server)
            CASE.act(server, client, None)
            with contextlib.suppress(Failed):
                wait_until('the hook', lambda: os.path.exists(hook), 30)
            if dumps:
                with contextlib.suppress(Failed):
                    wait_until('the dump', lambda: glob.glob(dumps + '*'), 30)
                time.sleep(1)
            client.close()
    slow_watch = [r for r in outcome.reports if verdict.depth_of(r, CASE.roots) is not None]
    if not slow_watch:
        return ['the slow unit is not in the store']
    if not os.path.exists(hook):
        return ['--on-violation ran nothing']
    with open(hook, encoding='utf-8') as file, open(hook + '.type', encoding='utf-8') as type_file:
        report, type_name = json.loads(file.read()), type_file.read()
    if report['type'] != type_name or report not in [{**r, 'stacks': r['stacks']} for r in outcome.reports]:
        faults.append(f'the hook got {report["type"]} at {report["begin_ns"]}, which is not what is stored')
    if dumps:
        traces = glob.glob(dumps + '*')
        if not traces:
            faults.append('--flight: the recorder wrote nothing')
        elif report['type'] not in instances(trained.culprit, folder, traces):
            faults.append(f'--flight: no instance of {report["type"]} in what the recorder wrote')
    return faults


def run(arguments, train):
    missing = CASE.subject.server.missing()
    if missing:
        print(f'left out, not installed: {" ".join(missing)}')
        return 77
    with Session() as session:
        faults = wrong(train(arguments, session, CASE.subject), session.folder)
    for fault in faults:
        print(fault)
    return 1 if faults else 0

# SPDX-License-Identifier: Apache-2.0
"""Alarms where nothing is wrong: a normal load that differs from the one of training.

The loads are those of the servers' own benchmarks. Training has one mix; then come other
mixes, sizes, numbers of clients. Databases are trained with few clients and with many, one after the
other: how long a query waits for others' locks depends on that more than on what it asks. Every report
is an alarm that should not be.
"""

import dataclasses
import re
import shutil
import subprocess
import time

import clients
import servers
import subjects
from guarded import Subject, Trained
from harness import Failed, Session

TRAIN_S = 20


def tool(*command):
    """(server, seconds) -> runs the command, with {port}, {folder}, {socket} and {seconds} filled in."""
    def load(server, seconds, times=1):
        filled = [word.format(port=server.port, folder=server.folder, socket=server.path('sock'),
                              seconds=max(1, round(seconds))) for word in command]
        subprocess.run(filled, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=seconds + 60)
    return load


def redis(tests, *more):
    return tool('redis-benchmark', '-p', '{port}', '-q', '-n', '6000', '-t', tests, *more)


def wrk(path, connections):
    return tool('wrk', '-t1', f'-c{connections}', '-d{seconds}', 'http://127.0.0.1:{port}' + path)


def memaslap(connections):
    return tool('memcaslap', '-s', '127.0.0.1:{port}', '-T', '1', '-c', str(connections), '-t', '{seconds}s')


def sysbench(name, threads, *more):
    return tool('sysbench', name, '--mysql-socket={socket}', '--mysql-user=root', '--mysql-db=test', '--tables=2',
                '--table-size=10000', f'--threads={threads}', '--time={seconds}', *more, 'run')


def pgbench(*more):
    return tool('pgbench', '-n', '-h', '{folder}', '-p', '{port}', '-U', 'postgres', '-T', '{seconds}', *more,
                'postgres')


def sysbench_tables(server):
    server.ask('create database test')
    subprocess.run(['sysbench', 'oltp_read_write', f'--mysql-socket={server.path("sock")}', '--mysql-user=root',
                    '--mysql-db=test', '--tables=2', '--table-size=10000', 'prepare'], check=True,
                   stdout=subprocess.DEVNULL)


def pgbench_tables(server):
    subprocess.run(['pgbench', '-i', '-q', '-s', '2', '-h', server.folder, '-p', str(server.port), '-U', 'postgres',
                    'postgres'], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@dataclasses.dataclass(frozen=True)
class Pair:
    subject: Subject   # trained with its loads
    others: tuple      # run with these
    needs: str         # the program of the loads
    bound: float = 1e-4  # alarms a unit; where larger, what was measured comes near the target of 1e-4


ALL = [
    Pair(Subject('redis', servers.Redis, (redis('set,get,incr,lpush,rpop,sadd,hset,zadd', '-c', '8'),), clients.Redis),
         (redis('set,get,mset,lrange_100,spop', '-c', '20', '-d', '300', '-r', '10000'),
          redis('get,set,incr,hset,zadd', '-c', '4', '-P', '8', '-r', '1000')), 'redis-benchmark'),
    Pair(Subject('nginx', subjects.Nginx, (wrk('/page.html', 8), wrk('/none', 4)), clients.Http),
         (wrk('/f7.html', 16), wrk('/large.bin', 4), wrk('/index.html', 32)), 'wrk'),
    Pair(Subject('apache2', subjects.Apache, (wrk('/page.html', 6), wrk('/none', 4)), clients.Http),
         (wrk('/f7.html', 4), wrk('/large.bin', 3), wrk('/index.html', 8)), 'wrk'),
    Pair(Subject('memcached', servers.Memcached, (memaslap(8),), clients.Memcache),
         (memaslap(24), subjects.MEMCACHED.loads[0], subjects.MEMCACHED.loads[1]), 'memcaslap'),
    Pair(Subject('mariadb', subjects.Mariadb, tuple(sysbench('oltp_read_write', clients) for clients in (1, 4, 12)),
                 lambda server: server.connect(), prepare=sysbench_tables, trace_s=40),
         (sysbench('oltp_read_only', 8, '--range-size=200'), sysbench('oltp_update_index', 2),
          sysbench('oltp_point_select', 8)), 'sysbench',
         # In some runs eight clients queue for one mutex for seconds: these units are slow indeed.
         bound=2e-4),
    Pair(Subject('postgres', subjects.Postgres, (pgbench('-c', '1'), pgbench('-c', '4'), pgbench('-c', '12')),
                 lambda server: server.connect(), prepare=pgbench_tables, trace_s=40),
         (pgbench('-c', '8', '-S'), pgbench('-c', '2', '-N', '-M', 'prepared'), pgbench('-c', '8')), 'pgbench'),
]


def alarms(pair, trained, seconds):
    trained.train(lambda server, client: None, TRAIN_S)
    with trained.guarded() as (server, outcome):
        share = seconds / len(pair.others)
        for load in pair.others:
            # redis-benchmark counts requests, not seconds.
            end = time.monotonic() + share
            while (left := end - time.monotonic()) > 0:
                load(server, left)
    trained.keep('normal', {'reports': outcome.reports, 'notes': outcome.notes})
    return outcome


def run(arguments):
    failed = done = 0
    with Session() as session:
        for pair in ALL:
            if arguments.server and pair.subject.name not in arguments.server:
                continue
            missing = pair.subject.server.missing() + ([] if shutil.which(pair.needs) else [pair.needs])
            if missing:
                print(f'{pair.subject.name}: left out, not installed: {" ".join(missing)}', flush=True)
                continue
            try:
                trained = Trained(arguments.culprit, session, pair.subject, arguments.keep)
                outcome = alarms(pair, trained, arguments.seconds)
            except (Failed, OSError) as failure:
                print(f'{pair.subject.name}: {failure}', flush=True)
                failed += 1
                continue
            units = outcome.unit_count()
            beyond = re.search(r'and ([0-9.]+) beyond', outcome.fact('slow units'))
            count = len(outcome.reports) + (int(float(beyond.group(1))) if beyond else 0)
            share = count / units if units else 1.0
            print(f'{pair.subject.name:10} {units:10.0f} units, {count} alarms ({100 * share:.4f} %), '
                  f'{outcome.fact("hits per unit")} hits each; {outcome.fact("withdrawn") or "none withdrawn"}',
                  flush=True)
            done += 1
            failed += arguments.strict and share > pair.bound
    return 1 if failed else 0 if done else 77

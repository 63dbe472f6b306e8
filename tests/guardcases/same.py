# SPDX-License-Identifier: Apache-2.0
"""Servers behave the same with guards: the same checks, with and without, compared.

A check is a command or a list of requests whose outcome is lines of text. Each server
is checked plain and with guards, by a profile that is trained before; every line must
be the same. redis is also held against its own test suite, where its source is there:
set CULPRIT_REDIS_SOURCE to an unpacked source of the same version.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile

import clients
import slow
from harness import Failed, Session

# Units of redis' suite that neither kill the server hard nor need what Debian leaves out.
REDIS_UNITS = ('unit/protocol unit/keyspace unit/scan unit/type/string unit/type/incr unit/type/list unit/type/set '
               'unit/type/zset unit/type/hash unit/type/stream unit/sort unit/expire unit/multi unit/auth '
               'unit/scripting unit/bitops unit/geo unit/hyperloglog unit/pubsub unit/lazyfree unit/slowlog '
               'unit/tracking unit/querybuf unit/dump').split()

TRIES = 3
SQL = [
    'create table c(id integer primary key, k integer, v varchar(60))',
    *[f"insert into c values ({i}, {i % 7}, 'value {i * 31 % 101}')" for i in range(1, 60)],
    'select count(*), sum(k), min(v), max(v) from c',
    'select k, count(*) from c group by k order by k',
    'select a.id, b.id from c a join c b on a.k = b.k and a.id < b.id order by a.id, b.id limit 20',
    'begin', "update c set v = 'changed' where k = 3", 'rollback', "select count(*) from c where v = 'changed'",
    'begin', "update c set v = 'changed' where k = 3", 'commit', "select count(*) from c where v = 'changed'",
    'select upper(v), length(v), substring(v, 1, 3) from c where id < 9 order by id',
    'select * from no_such_table', 'select 1 / 0', "insert into c values (1, 1, 'again')", 'selec 1',
    'delete from c where id > 40', 'select count(*) from c', 'create index ci on c(k)',
    'select id from c where k = 5 order by id', 'drop table c']
PATHS = ['/', '/index.html', '/page.html', '/none', '/large.bin', '/list/few/', '/plain/page.html', '/match/aaab',
         '/../etc/passwd', '/%00', '/index.html?a=b', '/list', '/f1.html']
REQUESTS = [(path, {}) for path in PATHS] + [
    ('/large.bin', {'head': 'Range: bytes=100-299\r\n'}), ('/large.bin', {'head': 'Range: bytes=-7\r\n'}),
    ('/index.html', {'head': 'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n'}),
    ('/index.html', {'method': 'POST', 'body': b'x' * 5000}), ('/index.html', {'method': 'DELETE'}),
    ('/index.html', {'method': 'OPTIONS'}), ('/page.html', {'head': 'X: ' + 'y' * 3000 + '\r\n'})]


def sql_lines(server):
    client = server.connect()
    lines = []
    for statement in SQL:
        said = re.sub(r'psql:\S*|at line \d+', '', client.ask(statement))
        lines.append(f'{statement[:60]}: {said.strip()}')
    client.close()
    return lines


def web_lines(server):
    lines = []
    for path, more in REQUESTS:
        # A server may close after what it refuses.
        client = clients.Http(server)
        status = client.ask(path, **more)
        lines.append(f'{more.get("method", "GET")} {path}: {status.strip().decode()} '
                     f'{hashlib.md5(client.body).hexdigest()} {len(client.body)}')
        client.close()
    return lines


def memcached_lines(server):
    if not shutil.which('memccapable'):
        raise Failed('memccapable is not installed (libmemcached-tools)')
    done = subprocess.run(['memccapable', '-h', '127.0.0.1', '-p', str(server.port)], check=False,
                          capture_output=True, text=True, timeout=300)
    return (done.stdout + done.stderr).splitlines()


CHECKS = {'nginx': web_lines, 'apache2': web_lines, 'memcached': memcached_lines, 'mariadb': sql_lines,
          'postgres': sql_lines}


def redis_unit(source, script, unit):
    """test name -> ok or err, of one unit of the suite with this script as redis-server."""
    with tempfile.TemporaryDirectory(prefix='culprit-redis-suite-') as folder:
        for part in ('tests', 'utils'):
            shutil.copytree(os.path.join(source, part), os.path.join(folder, part))
        os.mkdir(os.path.join(folder, 'src'))
        for name in ('redis-cli', 'redis-benchmark', 'redis-check-rdb', 'redis-check-aof'):
            os.symlink(shutil.which(name), os.path.join(folder, 'src', name))
        server = os.path.join(folder, 'src', 'redis-server')
        with open(server, 'w', encoding='utf-8') as file:
            file.write(script)
        os.chmod(server, 0o755)
        done = subprocess.run(['tclsh', 'tests/test_helper.tcl', '--single', unit, '--clients', '1', '--timeout', '300',
                               '--baseport', '18240', '--portcount', '40'], cwd=folder, check=False,
                              capture_output=True, text=True, errors='replace', timeout=1200)
    text = re.sub('\x1b\\[[0-9;]*m', '', done.stdout)
    results = {}
    for outcome, name in re.findall(r'^\[(ok|err|ignore|skip)\]: (.*?)(?: \(\d+ ms\))?$', text, re.MULTILINE):
        results[re.sub(r' in tests/.*', '', name)] = outcome
    return results


def check_redis(trained, source):
    plain = '#!/bin/sh\nexec redis-server "$@"\n'
    # The suite knows the server by its process id, so culprit comes to it, and not as its child.
    attach = f'{trained.culprit} guard attach {trained.profile} $$'
    guarded = (f'#!/bin/sh\n( (sleep 0.3; exec {attach}) >>{trained.folder}/suite.log 2>&1 & )\n'
               'exec redis-server "$@"\n')
    differ, count = [], 0
    for unit in REDIS_UNITS:
        ok = [name for name, outcome in redis_unit(source, plain, unit).items() if outcome == 'ok']
        # Some tests are about time, and fail on a busy machine now and then.
        for _ in range(TRIES):
            results = redis_unit(source, guarded, unit)
            bad = [f'{unit}: {name}: {results.get(name, "missing")}' for name in ok if results.get(name) != 'ok']
            if not bad:
                break
        differ += bad
        count += len(ok)
    return differ, count


def check(trained):
    """What differs, and how many lines were compared."""
    lines = CHECKS[trained.subject.name]
    with trained.plain() as server:
        plain = lines(server)
    with trained.guarded() as (server, _):
        guarded = lines(server)
    differ = [f'plain {a!r}, with guards {b!r}' for a, b in zip(plain, guarded) if a != b]
    if len(plain) != len(guarded):
        differ.append(f'{len(plain)} lines plain, {len(guarded)} with guards')
    return differ, len(plain)


def run(arguments, train):
    failed = done = 0
    source = os.environ.get('CULPRIT_REDIS_SOURCE', '')
    with Session() as session:
        for subject in slow.SUBJECTS:
            wanted = not arguments.server or subject.name in arguments.server
            if not wanted or subject.name not in [*CHECKS, 'redis']:
                continue
            missing = subject.server.missing()
            if subject.name == 'redis' and not source:
                missing.append('its source (CULPRIT_REDIS_SOURCE)')
            if missing:
                print(f'{subject.name}: left out, not there: {" ".join(missing)}', flush=True)
                continue
            try:
                trained = train(arguments, session, subject)
                differ, count = check_redis(trained, source) if subject.name == 'redis' else check(trained)
            except (Failed, OSError) as failure:
                differ, count = [str(failure)], 0
            print(f'{subject.name}: {count} checks, {len(differ)} differ with guards', flush=True)
            for line in differ:
                print(f'    {line}', flush=True)
            failed += bool(differ)
            done += 1
    return 77 if not done else 1 if failed else 0

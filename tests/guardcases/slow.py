# SPDX-License-Identifier: Apache-2.0
"""The cases: a request that is quick, and the same request when it is slow.

Training sees the quick one (`small`), so the slow one has a type, unless the case is
`unseen`: then training saw nothing like it. `ready` sets up what makes it slow, and
may itself be slow: it is outside of what is judged. `roots` are patterns of the
functions any of which is the answer; frames are "module!function", and where a
module has no symbols a pattern of the module is all that can be asked for. A second
client is there for what another one holds.
"""

import dataclasses
import threading
import time
from typing import Callable

import cases as realbugs
from guarded import Subject
from subjects import APACHE, MARIADB, MEMCACHED, NGINX, POSTGRES, REDIS, REDIS_AOF, SQLITE


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    subject: Subject
    roots: tuple
    act: Callable                   # (server, client, other)
    small: Callable | None = None   # (server, client)
    ready: Callable | None = None   # (server, client, other), before each act
    after: Callable | None = None   # (server, client, other), after each act
    alone: bool = False             # without the normal load, which would be slow as well
    in_tail: bool = False           # what is slow is not in the handler, but done for all at the iteration's end

    @property
    def unseen(self):
        return self.small is None


def words(*small):
    """A request of a redis or an SQL client."""
    return lambda server, client, other=None: client.ask(*small)


def fault(**levels):
    return lambda server, client, other: server.fault(**levels)


def healthy(server, client, other):
    server.fault()


# ---- redis

def redis_set(size):
    def fill(server, client, other=None):
        for first in range(0, size, 500):
            client.ask('SADD', 'members', *[f'm{i}' for i in range(first, min(first + 500, size))])
    return fill


def small_delete(server, client):
    redis_set(10)(server, client)
    client.ask('DEL', 'members')


def short_list(server, client):
    client.ask('RPUSH', 'short', '3', '1', '2')
    client.ask('LTRIM', 'short', '0', '9')
    client.ask('SORT', 'short', 'LIMIT', '0', '1')
    client.ask('LRANGE', 'short', '0', '-1')


def long_list(server, client, other):
    client.ask('DEL', 'long')
    for first in range(0, 200000, 500):
        client.ask('RPUSH', 'long', *[str(7919 * i % 10007) for i in range(first, first + 500)])


def watch(count):
    def ask(server, client, other=None):
        client.ask('WATCH', *[f'w{i}' for i in range(count)])
    return ask


def watch_few(server, client):
    watch(3)(server, client)
    client.ask('UNWATCH')


def script(rounds):
    return words('EVAL', f'local s = 0; for i = 1, {rounds} do s = s + i end; return 1', '0')


# ---- web

def page(path, **more):
    return lambda server, client, other=None: client.ask(path, **more)


PROPFIND = {'method': 'PROPFIND', 'head': 'Depth: 1\r\n'}


def slow_log(server, client, other):
    realbugs.slow_log(server)


def quick_log(server, client, other):
    realbugs.quick_log(server)


def fill_log(server, client, other=None):
    for _ in range(150):
        client.ask('/page.html')


# ---- memcached

def get_keys(count):
    return lambda server, client, other=None: client.get(*[f'key{i}' for i in range(count)])


def many_items(server, client, other):
    """A dump has those that were not used for a while, up to 2 MiB: some 60,000 of these."""
    for first in range(0, 60000, 20):
        client.put_all([f'dumped{i}' for i in range(first, first + 20)], b'v' * 100)
    time.sleep(1.5)


def dump_items(server, client, other):
    for slab_class in range(2, 7):
        client.tell(f'stats cachedump {slab_class} 0')


# ---- databases

HELD_S = 0.3


def hold(*statements):
    """The other session takes a lock, and lets go of it a while after the act began."""
    def take(server, client, other):
        other.ask(*statements)
        def let_go():
            time.sleep(HELD_S)
            other.ask('commit' if server.program != 'mariadbd' else 'commit; unlock tables')
        threading.Thread(target=let_go, daemon=True).start()
    return take


def settle(server, client, other):
    time.sleep(HELD_S)


MANY_INSERTS = 15 * realbugs.INSERTS
UPDATE = "update t set v = 'z' where id = 3"
CHANGE = 'update t set v = rand() where id = 4'
CROSS = 'select count(*) from {0} a join {0} b on a.v < b.v'
# Of InnoDB Debian's package names nothing.
MARIADB_LOCK = ('*lock_wait*', 'mariadbd!+0x*')
MARIADB_SYNC = (*realbugs.MARIADB_SYNC, '*fdatasync', '*fsync')
POSTGRES_LOCK = ('*ProcSleep*', '*LockAcquire*', '*XactLockTableWait*', '*heap_update*', '*heap_lock_tuple*',
                 '*WaitOnLock*', '*WaitLatch*')

ALL = [
    Case('redis-watch', REDIS, ('*watchForKey', '*watchCommand'), watch(4000), watch_few, after=words('UNWATCH')),
    Case('redis-keys', REDIS, ('*keysCommand',), words('KEYS', 'nothing*'), words('KEYS', 'nothing*'),
         ready=words('DEBUG', 'POPULATE', '100000'), after=words('FLUSHALL')),
    Case('redis-sort', REDIS, ('*sortCommand*',), words('SORT', 'long', 'LIMIT', '0', '1'), short_list,
         ready=long_list),
    Case('redis-range', REDIS, ('*lrangeCommand', '*addListRangeReply'), words('LRANGE', 'long', '0', '-1'), short_list,
         ready=long_list),
    Case('redis-delete', REDIS, ('*delCommand', '*delGenericCommand', '*dbGenericDelete', '*dbSyncDelete'),
         words('DEL', 'members'), small_delete, ready=redis_set(100000)),
    Case('redis-script', REDIS, ('*evalCommand*', '*evalGenericCommand', '*scriptCall', '*luaCallFunction'),
         script(5_000_000), script(10)),
    Case('redis-save', REDIS, ('*saveCommand', '*rdbSave*'), words('SAVE'), None,
         ready=words('DEBUG', 'POPULATE', '50000'), after=words('FLUSHALL')),
    Case('redis-slow-sync', REDIS_AOF, ('*flushAppendOnlyFile',), words('SET', 'a', 'b'), words('SET', 'a', 'b'),
         ready=fault(sync_sleeps=600000), after=healthy, alone=True, in_tail=True),

    Case('nginx-regex', NGINX, ('*ngx_*regex*', '*ngx_http_core_find*location*', '*ngx_http_core_find_config_phase'),
         page('/match/' + 20 * 'a' + 'bc'), page('/match/abc')),
    Case('nginx-listing', NGINX, ('*autoindex*', 'nginx!+0x*'), page('/list/many/'), page('/list/few/')),
    Case('nginx-compress', NGINX, ('*ngx_http_gzip*', '*deflate*', 'libz.so*'),
         page('/zip/large.txt', head='Accept-Encoding: gzip\r\n'),
         page('/zip/small.txt', head='Accept-Encoding: gzip\r\n')),
    Case('nginx-log-pipe', NGINX, ('*ngx_http_log*', '*ngx_http_free_request', '*ngx_http_finalize_request'),
         fill_log, page('/page.html'), ready=slow_log, after=quick_log, alone=True),
    Case('nginx-slow-send', NGINX, ('*ngx_linux_sendfile_chain', '*ngx_writev*'), page('/page.html'),
         page('/page.html'), ready=fault(send_sleeps=60000), after=healthy, alone=True),

    Case('apache2-rewrite', APACHE, ('*ap_regexec*', 'mod_rewrite.so!*'), page('/match/' + 22 * 'a' + 'bc'),
         page('/match/abc')),
    Case('apache2-propfind', APACHE, ('*apr_stat', 'mod_dav_fs.so!*', '*dav_*'), page('/list/many/', **PROPFIND),
         page('/list/few/', **PROPFIND)),
    Case('apache2-listing', APACHE, ('mod_autoindex.so!*', '*ap_sub_req*'), page('/list/many/'), page('/list/few/')),
    Case('apache2-htaccess', APACHE, ('*ap_directory_walk', '*ap_parse_htaccess', '*ap_open_htaccess'),
         page('/' + 'd/' * 900 + 'page.html'), page('/d/page.html')),

    # Which functions handle one event differs between trainings; libevent does work after them.
    Case('memcached-multiget', MEMCACHED, ('memcached!*',), get_keys(10000), get_keys(5), in_tail=True),
    Case('memcached-cachedump', MEMCACHED, ('memcached!*',),
         dump_items, None, ready=many_items),
    Case('memcached-slow-send', MEMCACHED, ('memcached!*',), get_keys(1), get_keys(1),
         ready=fault(send_sleeps=60000), after=healthy, alone=True, in_tail=True),

    Case('mariadb-hash', MARIADB, ('*Item_func_sha*', '*Item_func_benchmark*'),
         words("select benchmark(400000, sha1('a'))"), words("select benchmark(1, sha1('a'))")),
    Case('mariadb-join', MARIADB, ('*sub_select*', '*evaluate_join_record*', '*JOIN_CACHE*', '*exec_inner*'),
         words(CROSS.format('big') + ' where a.a < 300'), words(CROSS.format('small') + ' where a.a < 300')),
    Case('mariadb-row-lock', MARIADB, MARIADB_LOCK, words(UPDATE), words(UPDATE), ready=hold('begin', UPDATE),
         after=settle),
    Case('mariadb-table-lock', MARIADB, ('*MDL_*', '*open_table*', '*lock_tables*'), words(UPDATE), words(UPDATE),
         ready=hold('lock tables t write'), after=settle),
    Case('mariadb-slow-sync', MARIADB, MARIADB_SYNC, words(CHANGE), words(CHANGE), ready=fault(sync_sleeps=600000),
         after=healthy, alone=True),

    Case('postgres-join', POSTGRES, ('*ExecNestLoop', '*ExecAgg', '*ExecScan', '*text_lt', '*standard_ExecutorRun'),
         words(CROSS.format('t') + ' where a.id < 100'), words(CROSS.format('small') + ' where a.id < 100')),
    Case('postgres-regex', POSTGRES, ('*textregexeq', '*pg_regexec', '*RE_execute', '*RE_wchar_execute'),
         words("select count(*) from t where v ~ '(.)(.).*\\2.*\\1x'"),
         words("select count(*) from small where v ~ '(.)(.).*\\2.*\\1x'")),
    Case('postgres-sort', POSTGRES, ('*tuplesort_*', '*ExecSort'),
         words('select v from t order by v, id desc offset 100000'),
         words('select v from small order by v, id desc offset 100000')),
    Case('postgres-row-lock', POSTGRES, POSTGRES_LOCK, words(UPDATE), words(UPDATE), ready=hold('begin', UPDATE),
         after=settle),
    Case('postgres-table-lock', POSTGRES, ('*LockAcquire*', '*LockRelation*', '*ProcSleep*'), words(UPDATE),
         words(UPDATE), ready=hold('begin', 'lock table t'), after=settle),
    Case('postgres-slow-sync', POSTGRES, realbugs.POSTGRES_SYNC, words(UPDATE), words(UPDATE),
         ready=fault(sync_sleeps=600000), after=healthy, alone=True),

    Case('sqlite-autocommit', SQLITE, ('*sqlite3PagerCommit*', '*sqlite3BtreeCommit*', '*sqlite3VdbeHalt'),
         words(*MANY_INSERTS), words('begin', *MANY_INSERTS, 'commit')),
]

SUBJECTS = list({case.subject.name: case.subject for case in ALL}.values())
BY_NAME = {case.name: case for case in ALL}

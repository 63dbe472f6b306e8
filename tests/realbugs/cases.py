# SPDX-License-Identifier: Apache-2.0
"""The cases. Each is a server, a healthy load, another healthy load, and a trigger.

The trigger is what makes the same server slow: other work (`trouble`), other settings
(`wrong`: the server is started again with them), a fault of fault.c (`fault`), or
something done to the running server (`spoil`). The load of the bad time is `trouble`,
or the healthy one. The profile is made where everything can be tried, so it may know
more than the healthy loads: `staging` is a load of its own (else the two healthy ones),
`staged` are settings that it was also made with.

`loops` are the functions any of which is the answer: those that make the calls there
are too many of, or the loop around them; names as the server's own symbols have them.
`fix` is where the code or the setting would be changed. `expect` says what inference
from system calls can answer:

    named     one of `loops` by the number of calls
    time      one of `loops` in the list by time: the same calls, but long ones
    unknown   [not in profile]: no healthy load makes such calls
    nobody    nothing: the time is in no system call

`seen_by` names who else of culprit should see it: guard, mining.
Whether a case was in sight when the ranking was adjusted ("seen") or was kept aside
("aside") follows from its name alone; "late" ones were added when both had been seen.
"""

import dataclasses
import zlib
from typing import Any, Callable

import loads
from servers import Apache, Lighttpd, Mariadb, Memcached, Nginx, Postgres, Python, Redis, Sqlite


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    server: type
    normal: Callable
    other: Callable
    loops: tuple = ()
    fix: tuple = ()
    expect: str = 'named'
    seen_by: tuple = ('inference', 'guard', 'mining')
    settings: dict = dataclasses.field(default_factory=dict)
    prepare: Callable | None = None  # (server), once before all loads
    staging: Callable | None = None
    staged: dict | None = None
    trouble: Callable | None = None
    wrong: dict | None = None
    fault: dict | None = None
    spoil: Callable | None = None  # (server)
    mend: Callable | None = None   # (server), undoes it
    late: bool = False

    @property
    def half(self):
        if self.late:
            return 'late'
        return 'seen' if zlib.crc32(self.name.encode()) & 1 else 'aside'


CPU_ONLY = {'expect': 'nobody', 'seen_by': ('guard', 'mining')}


def spoiled(case_spoil, case_mend, load):
    """The load while the server is spoiled: for profiles that know the bad setting."""
    def run(server, seconds, times=1):
        case_spoil(server)
        tally = load(server, seconds, times)
        case_mend(server)
        return tally
    return run


# ---- sqlite

INSERTS = [f"insert into t values ({i}, 'row {i}')" for i in range(20)]


def sqlite_table(server):
    server.ask('create table t(a, b)')


SQLITE = {
    'server': Sqlite, 'prepare': sqlite_table,
    'normal': loads.statements([['begin', *INSERTS, 'commit'], ['select count(*) from t']]),
    'other': loads.statements([['begin', *INSERTS[:5], 'delete from t where a = 3', 'commit']]),
}

# ---- redis

CACHE = loads.redis([('SET', 'k{}', 'v' * 200), ('GET', 'k{}'), ('INCR', 'n{}'), ('LPUSH', 'l', 'x{}'),
                     ('LTRIM', 'l', '0', '50'), ('GET', 'k{}'), ('LRANGE', 'l', '0', '20')])
CACHE_OTHER = loads.redis([('HSET', 'h{}', 'a', '1'), ('HGETALL', 'h{}'), ('GET', 'k{}'), ('DEL', 'h{}')], keep=10)
REDIS = {'server': Redis, 'normal': CACHE, 'other': CACHE_OTHER}
REDIS_SENDS = ('writeToClient', '_writeToClient', 'connSocketWrite', 'sendReplyToClient',
               'handleClientsWithPendingWrites')


def set_redis(name, value):
    return lambda server: server.ask('CONFIG', 'SET', name, value)


AOF = REDIS | {
    'settings': {'appendonly': 'yes', 'appendfsync': 'everysec'},
    'spoil': set_redis('appendfsync', 'always'), 'mend': set_redis('appendfsync', 'everysec'),
}

# ---- web servers

WEB = loads.http(['/index.html', '/page.html', '/f1.html', '/f2.html', '/none', '/large.bin'])
WEB_OTHER = loads.http(['/f3.html', '/plain/page.html', '/large.bin', '/f4.html'], keep=10)
PROXIED = loads.http(['/page.html', '/proxied/page.html', '/f1.html', '/proxied/large.bin', '/none'])
FOLDERS = loads.http(['/index.html', '/page.html', '/plain/page.html', '/f1.html', '/d0/d1/none', '/large.bin'])
DEEP = loads.http(['/index.html', f'/{Apache.deep}/page.html', '/f1.html', '/page.html'])
ONE_BY_ONE = loads.http(['/index.html', '/page.html', '/plain/page.html'], keep=1)
MATCHES = loads.http(['/index.html', '/match/aaab', '/page.html', '/large.bin'])
LONG_MATCHES = loads.http(['/index.html', '/match/' + 16 * 'a' + 'bc', '/page.html', '/large.bin'])
NGINX = {'server': Nginx, 'normal': WEB, 'other': WEB_OTHER}
APACHE = {'server': Apache, 'normal': FOLDERS, 'other': WEB_OTHER}
LIGHTTPD = {'server': Lighttpd, 'normal': WEB, 'other': WEB_OTHER}


def slow_log(server):
    server.log_reader.bytes_a_second = 4000


def quick_log(server):
    server.log_reader.bytes_a_second = 0


# ---- an application in Python

PAGES = loads.http(['/a', '/bb', '/search/aab', '/ccc', '/dddd'], keep=5)
PYTHON = {'server': Python, 'late': True, 'normal': PAGES, 'seen_by': ('inference', 'mining'),
          'other': loads.http(['/eeeee', '/search/aaaab', '/ffffff'], keep=1)}

# ---- memcached

MEMCACHED = {'server': Memcached, 'normal': loads.memcache([10, 200, 3000]),
             'other': loads.memcache([50, 8000], keep=10)}

# ---- databases

ROW = "insert into t(v) values ('some text') returning id;\n"
LOOK = 'select * from t order by id desc limit 20;\n'
ROWS = loads.pgbench(ROW + LOOK, clients=6)
ROWS_OTHER = loads.pgbench(LOOK + ROW + "update t set v = 'x' where id = 7;\n" + LOOK)


def transaction(last):
    return 'begin;\n' + ROW + LOOK + last + ';\ncommit;\n'


NOTIFY = transaction("notify c, 'x'")
SORT = 'select v from t order by v, id desc offset 100000;\n'


def postgres_table(server):
    server.ask('create table t(id bigserial primary key, v text)',
               'insert into t(v) select md5(i::text) from generate_series(1, 20000) i', 'vacuum analyze t', 'checkpoint')


def set_postgres(name, value):
    return lambda server: server.ask(f'alter system set {name} = {value}', 'select pg_reload_conf()')


POSTGRES = {'server': Postgres, 'prepare': postgres_table, 'normal': ROWS, 'other': ROWS_OTHER}
POSTGRES_SYNC = ('XLogFlush', 'issue_xlog_fsync', 'RecordTransactionCommit', 'pg_fdatasync')
NOTIFIES = ('PreCommit_Notify', 'LockSharedObject', 'LockAcquireExtended', 'ProcSleep', 'WaitLatch', 'SetLatch',
            'ProcLockWakeup', 'LockReleaseAll', 'WaitEventSetWait')

STATEMENTS = ["insert into t(v) values ('some text')", 'select * from t order by id desc limit 20',
              "update t set v = 'y' where id = 5"]
SESSIONS = loads.sessions(STATEMENTS)
SESSIONS_OTHER = loads.sessions(['select * from t limit 10', 'select count(*) from t where id < 50', *STATEMENTS],
                                rounds=10)
MANY_TABLES = loads.sessions([f'select count(*) from m{i}' for i in range(40)], rounds=2)


def mariadb_table(server):
    server.ask('create database test', 'use test', 'create table t(id bigint primary key auto_increment, v text)',
               "insert into t(v) values ('a'), ('b'), ('c'), ('d'), ('e'), ('f')")


def mariadb_tables(server):
    mariadb_table(server)
    server.ask('use test', *[f'create table m{i}(a int) engine=myisam' for i in range(40)])


def set_mariadb(**values):
    return lambda server: server.ask(*[f'set global {name} = {value}' for name, value in values.items()])


MARIADB = {'server': Mariadb, 'prepare': mariadb_table, 'normal': SESSIONS, 'other': SESSIONS_OTHER}
LAZY = {'innodb_flush_log_at_trx_commit': 2, 'log_bin': 'binlog', 'sync_binlog': 0}
FLUSH = set_mariadb(innodb_flush_log_at_trx_commit=1, sync_binlog=1)
LAZY_AGAIN = set_mariadb(innodb_flush_log_at_trx_commit=2, sync_binlog=0)
MARIADB_SYNC = ('*ha_commit_trans*', '*log_write_up_to*', '*log_t*flush*', '*log_file_t*flush*', '*os_file_flush*', 'my_sync',
                '*sync_binlog_file*', '*flush_and_sync*', '*log_write*', '*fil_flush*', '*trx_flush_log*')

ALL = [
    # The server's own behaviour: other work or other settings.
    Case('sqlite-autocommit', **SQLITE, trouble=loads.statements([INSERTS, ['select count(*) from t']]),
         loops=('sqlite3PagerCommitPhaseOne', 'sqlite3PagerCommitPhaseTwo', 'sqlite3BtreeCommitPhaseOne',
                'sqlite3VdbeHalt'), fix=('sqlite3VdbeHalt',)),
    Case('sqlite-cpu', **SQLITE, **CPU_ONLY, trouble=loads.statements(
        [['begin', *INSERTS, 'commit'],
         ['with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select max(i) from n']])),
    Case('redis-watch', **REDIS, **CPU_ONLY, fix=('watchForKey',),
         trouble=loads.both(CACHE, loads.redis([('WATCH', *[f'w{i}' for i in range(3000)]), ('UNWATCH',)], clients=1))),
    Case('redis-keys', **REDIS | {'settings': {'enable_debug_command': 'yes'}}, **CPU_ONLY, fix=('keysCommand',),
         prepare=lambda server: server.ask('DEBUG', 'POPULATE', '100000'),
         trouble=loads.both(CACHE, loads.redis([('KEYS', 'nothing*'), ('GET', 'k1')], clients=1))),
    Case('redis-appendfsync', **AOF, staging=spoiled(AOF['spoil'], AOF['mend'], CACHE),
         loops=('flushAppendOnlyFile',), fix=('flushAppendOnlyFile',)),
    Case('redis-appendfsync-unseen', **AOF, expect='unknown', fix=('flushAppendOnlyFile',)),
    Case('redis-save', **REDIS, prepare=lambda server: server.ask('SET', 'big', 'v' * 100_000),
         staging=loads.both(CACHE, loads.redis([('SAVE',)], clients=1, pause=0.3)),
         trouble=loads.both(CACHE, loads.redis([('SAVE',)], clients=1, pause=0.01)),
         loops=('rdbSave', 'rdbSaveRio', 'saveCommand', 'rioFileWrite', 'rdbSaveToFile'), fix=('saveCommand', 'rdbSave')),
    Case('nginx-regex', **NGINX | {'normal': MATCHES}, **CPU_ONLY, trouble=LONG_MATCHES),
    Case('nginx-small-buffers', **NGINX | {'normal': PROXIED}, wrong={'buffer': '1k'},
         loops=('ngx_event_pipe', 'ngx_readv_chain', 'ngx_unix_recv', 'ngx_event_pipe_*'), fix=('ngx_event_pipe',)),
    Case('nginx-try-files', **NGINX, wrong={'tries': 30},
         loops=('ngx_open_cached_file',), fix=('ngx_http_try_files_handler', 'ngx_open_cached_file')),
    Case('nginx-log-pipe', **NGINX, settings={'log_pipe': True}, spoil=slow_log, mend=quick_log, expect='time',
         loops=('ngx_http_free_request', 'ngx_http_finalize_request', 'ngx_http_log_*'), fix=('ngx_http_free_request',)),
    Case('apache-htaccess', **APACHE, trouble=DEEP, fix=('ap_directory_walk', 'ap_parse_htaccess'),
         loops=('ap_directory_walk', 'ap_parse_htaccess', 'ap_open_htaccess', 'ap_pcfg_openfile')),
    Case('apache-lookups', **APACHE | {'normal': ONE_BY_ONE}, wrong={'lookups': 'On'}, staged={'lookups': 'On'},
         loops=('ap_get_useragent_host', 'apr_getnameinfo'), fix=('ap_get_useragent_host',)),
    Case('lighttpd-stat-cache', **LIGHTTPD, wrong={'stat_cache': 'disable'},
         loops=('stat_cache_*',), fix=('stat_cache_get_entry',)),
    Case('postgres-notify', **POSTGRES | {'normal': loads.pgbench(transaction('select 1'), clients=8)},
         staging=loads.pgbench(NOTIFY, clients=8), trouble=loads.pgbench(NOTIFY, clients=8),
         loops=NOTIFIES, fix=('PreCommit_Notify',)),
    Case('postgres-log-pipe', **POSTGRES, settings={'log_pipe': True, 'log_statement': 'all'}, spoil=slow_log,
         mend=quick_log, expect='time', loops=('EmitErrorReport', 'errfinish'), fix=('EmitErrorReport',)),
    Case('postgres-work-mem', **POSTGRES | {'normal': loads.both(ROWS, loads.pgbench(SORT, clients=1, pause_us=50000))},
         settings={'work_mem': "'64MB'"[1:-1], 'temp_buffers': '8MB'},
         staging=loads.both(ROWS, loads.pgbench("set work_mem = '64kB';\n" + SORT, clients=1, pause_us=200000)),
         trouble=loads.both(ROWS, loads.pgbench("set work_mem = '64kB';\n" + SORT, clients=1, pause_us=50000)),
         loops=('tuplesort_*', 'LogicalTape*', 'BufFile*', 'FileWrite', 'FileRead', 'ltsWriteBlock'),
         fix=('tuplesort_performsort', 'tuplesort_puttupleslot')),
    Case('postgres-sync-commit', **POSTGRES, settings={'synchronous_commit': 'off'}, staged={'synchronous_commit': 'on'},
         wrong={'synchronous_commit': 'on'}, loops=POSTGRES_SYNC, fix=('RecordTransactionCommit', 'XLogFlush')),
    Case('postgres-reconnect', **POSTGRES, trouble=loads.pgbench(ROW + LOOK, clients=3, reconnect=True),
         loops=('BackendStartup', 'fork_process', 'InitPostgres', 'PostmasterMain', 'BackendRun', 'PostgresMain',
                'RelationCacheInitialize*', 'InitProcess', 'InitializeGUC*', 'proc_exit', 'shmem_exit', 'hba_*',
                'ClientAuthentication', 'StreamConnection', 'load_relcache*'), fix=('BackendStartup',)),
    Case('postgres-cpu', **POSTGRES, **CPU_ONLY,
         trouble=loads.both(ROWS, loads.pgbench('select sum(i * j) from generate_series(1, 300) i, '
                                                'generate_series(1, 300) j;\n', clients=1))),
    Case('mariadb-flush', **MARIADB, settings=LAZY, spoil=FLUSH, mend=LAZY_AGAIN,
         staging=spoiled(FLUSH, LAZY_AGAIN, SESSIONS), loops=MARIADB_SYNC, fix=('*log_write_up_to*',)),
    Case('mariadb-table-cache', **MARIADB | {'prepare': mariadb_tables, 'normal': MANY_TABLES, 'other': SESSIONS},
         spoil=set_mariadb(table_open_cache=10), mend=set_mariadb(table_open_cache=2000),
         loops=('*open_table*', 'mi_open*', '*ha_myisam*open*', '*tdc_acquire_share*', '*closefrm*', 'mi_close*',
                '*ha_open*', '*tc_*', '*open_table_def*', '*open_table_from_share*', '*intern_close_table*'),
         fix=('*open_table*',)),
    Case('mariadb-cpu', **MARIADB, **CPU_ONLY,
         trouble=loads.both(SESSIONS, loads.sessions(["select benchmark(200000, md5('a'))"], clients=1))),
    # Faults put in.
    Case('redis-accept', **REDIS, fault={'accept_fails': 1}, loops=('acceptTcpHandler', 'anetTcpAccept'),
         fix=('acceptTcpHandler',)),
    Case('redis-receive', **REDIS, fault={'receive_fails': 1}, loops=('readQueryFromClient', 'connSocketRead'),
         fix=('readQueryFromClient', 'connSocketRead')),
    Case('redis-send-fails', **REDIS, fault={'send_fails': 30}, loops=REDIS_SENDS, fix=REDIS_SENDS),
    Case('redis-send-short', **REDIS, fault={'send_bytes': 16}, loops=REDIS_SENDS, fix=REDIS_SENDS),
    Case('redis-slow-sync', **AOF | {'spoil': None, 'mend': None,
                                     'settings': {'appendonly': 'yes', 'appendfsync': 'always'}},
         fault={'sync_sleeps': 20000}, expect='unknown', fix=('flushAppendOnlyFile',)),
    Case('nginx-accept', **NGINX, fault={'accept_fails': 1}, loops=('ngx_event_accept',), fix=('ngx_event_accept',)),
    Case('nginx-receive-again', **NGINX, fault={'receive_again': 20}, loops=('ngx_unix_recv',), fix=('ngx_unix_recv',)),
    Case('nginx-send-short', **NGINX, fault={'send_bytes': 700}, fix=('ngx_linux_sendfile_chain',),
         loops=('ngx_linux_sendfile_chain', 'ngx_writev', 'ngx_http_write_filter', 'ngx_http_output_filter',
                'ngx_output_chain')),
    Case('apache-accept', **APACHE, fault={'accept_fails': 1}, loops=('apr_socket_accept', 'ap_unixd_accept'),
         fix=('ap_unixd_accept',)),
    Case('apache-send-short', **APACHE, fault={'send_bytes': 400}, fix=('ap_core_output_filter',),
         loops=('apr_socket_sendv', 'apr_socket_send', 'apr_socket_sendfile', 'ap_core_output_filter')),
    Case('lighttpd-accept', **LIGHTTPD, fault={'accept_fails': 1}, fix=('fdevent_accept_listenfd',),
         loops=('fdevent_accept_listenfd', 'network_server_handle*', 'fdevent_poll')),
    Case('lighttpd-receive', **LIGHTTPD, fault={'receive_fails': 1}, fix=('connection_read_cq',),
         loops=('connection_*', 'fdevent_poll', 'fdevent_socket_read_discard')),
    Case('lighttpd-send-short', **LIGHTTPD, fault={'send_bytes': 300}, fix=('network_write*',),
         loops=('network_write*', 'connection_*', 'chunkqueue_*')),
    Case('memcached-accept', **MEMCACHED, fault={'accept_fails': 1}),
    Case('memcached-receive-again', **MEMCACHED, fault={'receive_again': 20}),
    Case('memcached-send-short', **MEMCACHED, fault={'send_bytes': 40}),
    Case('postgres-sync-again', **POSTGRES, fault={'sync_again': 20}, loops=POSTGRES_SYNC, fix=('issue_xlog_fsync',)),
    Case('postgres-send-short', **POSTGRES, fault={'send_bytes': 20}, fix=('secure_write',),
         loops=('secure_write', 'secure_raw_write', 'pq_flush*', 'internal_flush', 'ReadyForQuery')),
    Case('mariadb-sync-again', **MARIADB, settings=LAZY | {'innodb_flush_log_at_trx_commit': 1},
         fault={'sync_again': 20}, loops=MARIADB_SYNC, fix=('*log_write_up_to*',)),
    Case('mariadb-send-short', **MARIADB, fault={'send_bytes': 20}, fix=('*net_real_write*',),
         loops=('*net_real_write*', '*vio_write*', '*net_flush*', '*net_write*', '*Protocol*')),
    # Added when the ranking was done.
    Case('redis-receive-again', **REDIS, late=True, fault={'receive_again': 20},
         loops=('readQueryFromClient', 'connSocketRead'), fix=('readQueryFromClient', 'connSocketRead')),
    Case('redis-script', **REDIS, **CPU_ONLY, late=True, fix=('evalCommand',), trouble=loads.both(CACHE, loads.redis(
        [('EVAL', 'local s = 0; for i = 1, 300000 do s = s + i end; return 1', '0'), ('GET', 'k1')], clients=1))),
    Case('redis-sort', **REDIS, **CPU_ONLY, late=True, fix=('sortCommandGeneric',),
         prepare=lambda server: server.ask('RPUSH', 'long', *[str(7919 * i % 10007) for i in range(10000)]),
         trouble=loads.both(CACHE, loads.redis([('SORT', 'long', 'LIMIT', '0', '1'), ('GET', 'k1')], clients=1))),
    Case('nginx-send-sleeps', **NGINX, late=True, fault={'send_sleeps': 5000}, expect='unknown'),
    Case('apache-receive-again', **APACHE, late=True, fault={'receive_again': 20}, loops=('apr_socket_recv',),
         fix=('apr_socket_recv',)),
    Case('lighttpd-send-fails', **LIGHTTPD, late=True, fault={'send_fails': 30}, fix=('network_write*',),
         loops=('network_write*', 'connection_*', 'chunkqueue_*', 'fdevent_poll')),
    Case('memcached-receive', **MEMCACHED, late=True, fault={'receive_fails': 1}),
    Case('memcached-send-fails', **MEMCACHED, late=True, fault={'send_fails': 30}),
    Case('postgres-receive-again', **POSTGRES, late=True, fault={'receive_again': 20},
         loops=('secure_read', 'secure_raw_read', 'pq_getbyte'), fix=('secure_read',)),
    Case('mariadb-receive-again', **MARIADB, late=True, fault={'receive_again': 20},
         loops=('*vio_read*', '*my_net_read*'), fix=('*vio_read*',)),
    # Interpreted, by the probes of the interpreter.
    Case('python-lock', **PYTHON, spoil=Python.leave_lock, mend=Python.remove_lock,
         loops=('py::acquire_lock:*',), fix=('py::acquire_lock:*',)),
    Case('python-templates', **PYTHON, wrong={'check_every': 1}, loops=('py::check_templates:*',),
         fix=('py::do_GET:*', 'py::check_templates:*')),
    Case('python-regex', **PYTHON | CPU_ONLY, fix=('py::search:*',),
         trouble=loads.http(['/a', '/bb', '/search/' + 27 * 'a' + 'b', '/ccc', '/dddd'], keep=5)),
]

BY_NAME = {case.name: case for case in ALL}

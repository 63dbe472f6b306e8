# SPDX-License-Identifier: Apache-2.0
"""The servers of the cases, with what they normally do; tests/realbugs has most of it."""

import cases as realbugs
import clients
import loads
import servers
from guarded import Subject


class Nginx(servers.Nginx):
    """With listings of folders and compression, and folders of few and many files."""

    def configure(self):
        super().configure()
        with open(self.path('nginx.conf'), encoding='utf-8') as file:
            text = file.read()
        more = 'location /list/ { autoindex on; }\n    location /zip/ { gzip on; gzip_comp_level 9; gzip_types *; }\n'
        self.write('nginx.conf', text.replace('location / {', more + '    location / {', 1))
        make_folders(self)
        self.write('www/zip/small.txt', sample_text(4000))
        self.write('www/zip/large.txt', sample_text(8_000_000))


class Apache(servers.Apache):
    """With rewriting, WebDAV and listings."""

    loaded = ('rewrite', 'dav', 'dav_fs', 'autoindex', 'dir')

    def configure(self):
        super().configure()
        with open(self.path('apache.conf'), encoding='utf-8') as file:
            text = file.read()
        more = ''.join(f'LoadModule {name}_module {self.modules}/mod_{name}.so\n' for name in self.loaded)
        more += f'''
DavLockDB {self.path('locks')}
RewriteEngine On
RewriteRule "^/match/(a+)+b$" "/index.html" [L]
<Directory {self.path('www/list')}>
  Options Indexes
  DAV On
</Directory>
'''
        self.write('apache.conf', text + more)
        make_folders(self)
        # As deep as a path may be.
        self.write('www/' + 'd/' * 900 + 'page.html', 'd' * 2000)
        self.write('www/d/page.html', 'd' * 2000)


def make_folders(server):
    for i in range(5):
        server.write(f'www/list/few/f{i}', 'x')
    for i in range(3000):
        server.write(f'www/list/many/f{i}', 'x')


def sample_text(size):
    words = ' '.join(f'{7919 * i % 100003} of what was said' for i in range(size // 20))
    return words[:size]


class Mariadb(servers.Mariadb):
    def connect(self):
        return clients.Sql(self.client('-N', '-B', '--force', '--unbuffered', 'test'), '\\! echo')


class Postgres(servers.Postgres):
    def connect(self):
        return clients.Sql([*self.psql(), '-A', '-t', '-X', 'postgres'], '\\echo')


class Sqlite(servers.Sqlite):
    def close(self):
        """As a client it is the server itself."""


def mariadb_tables(server):
    realbugs.mariadb_table(server)
    server.ask('use test', 'create table big(a int, v varchar(40))',
               "insert into big select seq, md5(seq) from seq_1_to_20000", 'create table small like big',
               "insert into small select * from big limit 20")


def postgres_tables(server):
    realbugs.postgres_table(server)
    server.ask('create table small as select * from t limit 20', 'vacuum analyze')


def memcached_keys(server):
    client = clients.Memcache(server)
    for i in range(20000):
        client.put(f'key{i}', b'v' * 100)
    client.close()


REDIS = Subject('redis', servers.Redis, (realbugs.CACHE, realbugs.CACHE_OTHER), clients.Redis,
                settings={'enable_debug_command': 'yes'})
REDIS_AOF = Subject('redis-aof', servers.Redis, (realbugs.CACHE, realbugs.CACHE_OTHER), clients.Redis,
                    settings={'appendonly': 'yes', 'appendfsync': 'always'}, faults=True)
NGINX = Subject('nginx', Nginx, (realbugs.MATCHES, realbugs.WEB_OTHER), clients.Http,
                settings={'log_pipe': True}, faults=True)
APACHE = Subject('apache2', Apache, (realbugs.FOLDERS, realbugs.WEB_OTHER), clients.Http)
MEMCACHED = Subject('memcached', servers.Memcached,
                    (loads.memcache([10, 200, 3000]), loads.memcache([50, 8000], keep=10)), clients.Memcache,
                    prepare=memcached_keys, on_disk=False, faults=True)
MARIADB = Subject('mariadb', Mariadb, (realbugs.SESSIONS, realbugs.SESSIONS_OTHER), lambda server: server.connect(),
                  settings=realbugs.LAZY | {'innodb_flush_log_at_trx_commit': 1}, prepare=mariadb_tables,
                  trace_s=40, faults=True)
POSTGRES = Subject('postgres', Postgres, (realbugs.ROWS, realbugs.ROWS_OTHER), lambda server: server.connect(),
                   prepare=postgres_tables, trace_s=40, faults=True)
SQLITE = Subject('sqlite', Sqlite, (), lambda server: server, prepare=realbugs.sqlite_table)

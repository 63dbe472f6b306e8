# SPDX-License-Identifier: Apache-2.0
"""How each server is set up and started; what may differ between cases is a setting."""

import fcntl
import glob
import os
import signal
import socket
import subprocess
import threading
import time

from harness import HERE, Failed, Server, can_connect


class SlowReader(threading.Thread):
    """Reads what a server logs into a pipe; slowly when asked to."""

    def __init__(self, fd):
        super().__init__(daemon=True)
        self._fd = fd
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)
        self.bytes_a_second = 0  # no bound
        self.start()

    def run(self):
        while True:
            bound = self.bytes_a_second
            try:
                data = os.read(self._fd, 4096 if bound else 65536)
            except OSError:
                return
            if not data:
                return
            if bound:
                time.sleep(len(data) / bound)


class WebServer(Server):
    """Small, middling and large files; a long path of folders."""

    deep = '/'.join(f'd{i}' for i in range(40))

    def set_up(self):
        self.write('www/index.html', 'x' * 900)
        self.write('www/page.html', 'y' * 6000)
        self.write('www/large.bin', 'z' * 300_000)
        self.write('www/plain/page.html', 'p' * 2000)
        self.write(f'www/{self.deep}/page.html', 'd' * 2000)
        for i in range(20):
            self.write(f'www/f{i}.html', 'f' * (500 + 100 * i))
        self.configure()

    def configure(self):
        raise NotImplementedError


class Nginx(WebServer):
    program = 'nginx'

    def configure(self):
        setting = self.settings.get
        tries = ' '.join(f'$uri.{i}' for i in range(setting('tries', 1)))
        log = 'off'
        if setting('log_pipe'):
            # Both ends are ours: a pipe nobody reads would end the server's writes.
            os.mkfifo(self.path('access.pipe'))
            self.log_reader = SlowReader(os.open(self.path('access.pipe'), os.O_RDWR))
            log = self.path('access.pipe')
        self.write('nginx.conf', f'''
daemon off; user root; worker_processes {setting('workers', 1)}; pid {self.path('pid')};
error_log {self.path('error.log')};
events {{ worker_connections 512; }}
http {{
  access_log {log};
  sendfile {setting('sendfile', 'on')};
  client_body_temp_path {self.path('body')}; proxy_temp_path {self.path('proxy')};
  fastcgi_temp_path {self.path('f')}; uwsgi_temp_path {self.path('u')}; scgi_temp_path {self.path('s')};
  keepalive_requests 100000;
  server {{
    listen 127.0.0.1:{self.port}; root {self.path('www')};
    location / {{ try_files $uri {tries} =404; }}
    location /proxied/ {{
      proxy_pass http://127.0.0.1:{self.port}/;
      proxy_buffer_size {setting('buffer', '64k')}; proxy_buffers 8 {setting('buffer', '64k')};
      proxy_busy_buffers_size {setting('buffer', '64k')}; proxy_max_temp_file_size 0;
    }}
    location ~ "^/match/(a+)+b$" {{ return 200; }}
  }}
}}
''')

    def command(self):
        return ['nginx', '-e', self.path('error.log'), '-c', self.path('nginx.conf')]


class Apache(WebServer):
    program = '/usr/sbin/apache2'
    stop_signal = signal.SIGTERM
    modules = '/usr/lib/apache2/modules'

    def configure(self):
        setting = self.settings.get
        self.write('apache.conf', f'''
ServerRoot {self.folder}
ServerName localhost
Listen 127.0.0.1:{self.port}
PidFile {self.path('pid')}
ErrorLog {self.path('error.log')}
User www-data
Group www-data
LoadModule mpm_event_module {self.modules}/mod_mpm_event.so
LoadModule authz_core_module {self.modules}/mod_authz_core.so
LoadModule mime_module {self.modules}/mod_mime.so
TypesConfig /etc/mime.types
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
KeepAlive On
MaxKeepAliveRequests 0
HostnameLookups {setting('lookups', 'Off')}
LogFormat "%h %r" short
CustomLog {self.path('access.log')} short
DocumentRoot {self.path('www')}
<Directory {self.path('www')}>
  AllowOverride {setting('override', 'All')}
  Require all granted
</Directory>
<Directory {self.path('www/plain')}>
  AllowOverride None
</Directory>
''')

    def command(self):
        return [self.program, '-X' if self.settings.get('one') else '-DFOREGROUND', '-f',
                self.path('apache.conf')]


class Lighttpd(WebServer):
    program = '/usr/sbin/lighttpd'

    def configure(self):
        setting = self.settings.get
        self.write('lighttpd.conf', f'''
server.port = {self.port}
server.bind = "127.0.0.1"
server.document-root = "{self.path('www')}"
server.errorlog = "{self.path('error.log')}"
server.stat-cache-engine = "{setting('stat_cache', 'simple')}"
server.max-keep-alive-requests = 100000
server.network-backend = "{setting('backend', 'writev')}"
index-file.names = ( "index.html" )
mimetype.assign = ( ".html" => "text/html", "" => "application/octet-stream" )
''')

    def command(self):
        return [self.program, '-D', '-f', self.path('lighttpd.conf')]


class Redis(Server):
    program = 'redis-server'

    def command(self):
        settings = {'save': '', 'appendonly': 'no'} | self.settings
        flags = []
        for name, value in settings.items():
            flags += ['--' + name.replace('_', '-'), str(value)]
        return ['redis-server', '--bind', '127.0.0.1', '--port', str(self.port), '--dir', self.folder, *flags]

    def ask(self, *words):
        """One command; its reply's first line."""
        with socket.create_connection(('127.0.0.1', self.port), 10) as connection:
            connection.sendall(b'*%d\r\n' % len(words) +
                               b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in map(str.encode, words)))
            return connection.makefile('rb').readline()


class Memcached(Server):
    program = 'memcached'

    def command(self):
        user = ['-u', 'root'] if os.geteuid() == 0 else []
        return ['memcached', *user, '-l', '127.0.0.1', '-p', str(self.port), '-t', '2', '-U', '0', '-m', '64']


class Postgres(Server):
    bin = max(glob.glob('/usr/lib/postgresql/*/bin/'), default='/usr/lib/postgresql/15/bin/')
    program = bin + 'postgres'
    needs = (bin + 'initdb', 'pgbench', 'psql')
    user = 'postgres'
    stop_signal = signal.SIGINT

    def set_up(self):
        def make(folder):
            command = [self.bin + 'initdb', '-D', folder, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C']
            if os.geteuid() == 0:
                os.mkdir(folder)
                subprocess.run(['chown', 'postgres', folder], check=True)
                command = ['setpriv', '--reuid=postgres', '--clear-groups', *command]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd='/')
        self.session.copy_of('postgres', make, self.path('data'))
        if self.settings.get('log_pipe'):
            read, self._log_end = os.pipe()
            self.log_reader = SlowReader(read)

    def stderr(self, log):
        return self._log_end if self.settings.get('log_pipe') else log

    def command(self):
        settings = {'port': self.port, 'listen_addresses': '127.0.0.1', 'unix_socket_directories': self.folder,
                    'autovacuum': 'off', 'shared_buffers': '32MB'}
        settings |= {k: v for k, v in self.settings.items() if k != 'log_pipe'}
        flags = []
        for name, value in settings.items():
            flags += ['-c', f'{name}={value}']
        return [self.program, '-D', self.path('data'), *flags]

    def is_ready(self):
        return can_connect(self.port) and subprocess.run(self.psql('select 1'), check=False,
                                                         stdout=subprocess.DEVNULL,
                                                         stderr=subprocess.DEVNULL).returncode == 0

    def psql(self, *statements):
        flags = []
        for statement in statements:
            flags += ['-c', statement]
        return ['psql', '-q', '-h', self.folder, '-p', str(self.port), '-U', 'postgres', *flags]

    def ask(self, *statements):
        done = subprocess.run(self.psql(*statements), check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f'psql: {done.stderr[-300:]}')


class Mariadb(Server):
    program = 'mariadbd'
    needs = ('mariadb-install-db', 'mariadb')

    def set_up(self):
        def make(folder):
            subprocess.run(['mariadb-install-db', '--no-defaults', f'--user={os.environ.get("USER", "root")}',
                            f'--datadir={folder}', '--auth-root-authentication-method=normal',
                            '--skip-test-db'], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session.copy_of('mariadb', make, self.path('data'))

    def command(self):
        settings = {'skip_networking': 1, 'socket': self.path('sock'), 'innodb_buffer_pool_size': '32M'}
        flags = [f'--{name}={value}' for name, value in (settings | self.settings).items()]
        return ['mariadbd', '--no-defaults', '--user=root', f'--datadir={self.path("data")}', *flags]

    def client(self, *flags):
        return ['mariadb', '--no-defaults', '--socket=' + self.path('sock'), '-u', 'root', *flags]

    def is_ready(self):
        return os.path.exists(self.path('sock')) and subprocess.run(
            self.client('-e', 'select 1'), check=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode == 0

    def ask(self, *statements):
        done = subprocess.run(self.client('-e', '; '.join(statements)), check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f'mariadb: {done.stderr[-300:]}')


class Python(Server):
    """A web application in Python; its functions are known by the interpreter's probes."""

    program = '/usr/bin/python3'
    profile_flags = ('--functions', 'python=/usr/bin/python3')

    @classmethod
    def missing(cls):
        if super().missing():
            return super().missing()
        with open(cls.program, 'rb') as file:
            return [] if b'function__entry' in file.read() else ['a python3 with probes']

    def set_up(self):
        self.write('counter', '0')
        for i in range(40):
            self.write(f'templates/t{i}.html', '<p>{count}</p>' + 'x' * 50 * i)

    def command(self):
        return [self.program, os.path.join(HERE, 'python_server.py'), str(self.port), self.folder,
                str(self.settings.get('check_every', 50))]

    def leave_lock(self):
        self.write('counter.lock', '')

    def remove_lock(self):
        os.remove(self.path('counter.lock'))


class Sqlite(Server):
    """The shell, fed through a pipe: no server, but it waits for work like one."""

    program = 'sqlite3'

    def command(self):
        return ['sqlite3', '-batch', self.path('db')]

    def stdin(self):
        return subprocess.PIPE

    def is_ready(self):
        return self.process.poll() is None

    def ask(self, *statements):
        """Runs the statements and returns when they are done."""
        marker = self.path('done')
        text = ''.join(s + ';\n' for s in statements) + f".output {marker}\nselect 'x';\n.output stdout\n"
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()
        deadline = time.monotonic() + 60
        while not (os.path.exists(marker) and os.path.getsize(marker) > 0):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise Failed('sqlite3 does not answer')
            time.sleep(0.001)
        os.remove(marker)

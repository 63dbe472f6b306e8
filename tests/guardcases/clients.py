# SPDX-License-Identifier: Apache-2.0
"""Clients that make one request at a time and return when it is answered."""

import itertools
import socket
import subprocess

from harness import Failed

ANSWER_WITHIN_S = 60


class Connection:
    """A connection to a server of loopback, with a buffer."""

    def __init__(self, server):
        self._socket = socket.create_connection(('127.0.0.1', server.port), ANSWER_WITHIN_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile('rb')

    def close(self):
        self._file.close()
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data)

    def line(self):
        line = self._file.readline()
        if not line:
            raise Failed('the server closed a connection')
        return line

    def take(self, size):
        data = self._file.read(size)
        if len(data) < size:
            raise Failed('the server closed a connection')
        return data


class Redis(Connection):
    def ask(self, *words):
        """One command; its reply, of arrays only the number of elements."""
        self.send(b'*%d\r\n' % len(words) + b''.join(
            b'$%d\r\n%s\r\n' % (len(w), w) for w in (str(word).encode() for word in words)))
        return self._reply()

    def _reply(self):
        line = self.line()
        if line[:1] == b'$' and int(line[1:]) >= 0:
            return self.take(int(line[1:]) + 2)[:-2]
        if line[:1] == b'*':
            for _ in range(int(line[1:])):
                self._reply()
        return line.strip()


class Http(Connection):
    """HTTP/1.1 with the connection kept; `body` is that of the last answer."""

    body = b''

    def ask(self, path, method='GET', head='', body=b''):
        length = f'Content-Length: {len(body)}\r\n' if body else ''
        self.send(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n{head}{length}\r\n'.encode() + body)
        status = self.line()
        size, chunked = 0, False
        while (line := self.line().lower()) != b'\r\n':
            if line.startswith(b'content-length:'):
                size = int(line.split(b':')[1])
            chunked = chunked or (line.startswith(b'transfer-encoding:') and b'chunked' in line)
        self.body = b'' if chunked or method == 'HEAD' else self.take(size)
        while chunked and (size := int(self.line(), 16)) > 0:
            self.body += self.take(size + 2)[:-2]
        if chunked:
            self.line()
        return status


class Memcache(Connection):
    def put(self, key, value):
        self.send(b'set %s 0 0 %d\r\n%s\r\n' % (key.encode(), len(value), value))
        self.line()

    def put_all(self, keys, value):
        """Answered once."""
        self.send(b''.join(b'set %s 0 0 %d noreply\r\n%s\r\n' % (key.encode(), len(value), value) for key in keys[:-1]))
        self.put(keys[-1], value)

    def get(self, *keys):
        self.send(b'get ' + ' '.join(keys).encode() + b'\r\n')
        while (line := self.line()) != b'END\r\n':
            self.take(int(line.split()[3]) + 2)

    def tell(self, text):
        """A command that answers with lines up to END or OK."""
        self.send(text.encode() + b'\r\n')
        while self.line().split()[0] not in (b'END', b'OK', b'RESET', b'ERROR', b'CLIENT_ERROR'):
            pass


class Sql:
    """A session of a database's own client program, fed through a pipe.

    `echo` is its command that prints the rest of the line: that a statement is done is said by the
    client, for the server would take two statements in a row for one unit.
    """

    def __init__(self, command, echo):
        self._echo = echo
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        self._numbers = itertools.count()

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(ANSWER_WITHIN_S)

    def ask(self, *statements):
        marker = f'done {next(self._numbers)}'
        text = ''.join(s + ';\n' for s in statements)
        self._process.stdin.write(f'{text}{self._echo} {marker}\n')
        self._process.stdin.flush()
        said = ''
        while (line := self._process.stdout.readline()).strip() != marker:
            if not line:
                raise Failed(f'a database session ended: {said[-300:]}')
            said += line
        return said

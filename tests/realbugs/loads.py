# SPDX-License-Identifier: Apache-2.0
"""Loads: clients that ask a server for some seconds and measure how long it takes.

Every load is a function of (server, seconds, times=1) that returns a Tally; `times`
is how many times its clients there are. They are closed loops with pauses, so that
the machine is never full and the mix of work stays the same whatever its speed.
Clients come back with new connections now and then, as clients do. What does not
answer in time is an error, counted as taking that long.
"""

import re
import socket
import subprocess
import threading
import time
import zlib

ANSWER_WITHIN_S = 0.5


class Tally:
    def __init__(self):
        self.latencies = []
        self.errors = 0

    def add(self, other):
        self.latencies += other.latencies
        self.errors += other.errors

    def mean_ms(self):
        return 1000 * sum(self.latencies) / len(self.latencies) if self.latencies else 0.0

    def worst_ms(self):
        return 1000 * max(self.latencies, default=0.0)

    def __str__(self):
        return (f'{len(self.latencies)} requests, mean {self.mean_ms():.2f} ms, '
                f'longest {self.worst_ms():.1f} ms, {self.errors} errors')


def together(seconds, clients, body):
    """Runs body(tally, deadline, number) in threads and adds up."""
    deadline = time.monotonic() + seconds
    tallies = [Tally() for _ in range(clients)]
    threads = [threading.Thread(target=body, args=(tally, deadline, i)) for i, tally in enumerate(tallies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def sockets(connect, request, keep, pause, clients):
    """Clients that connect, make `keep` requests and come again."""
    def body(tally, deadline, number):
        at = number
        while time.monotonic() < deadline:
            begin = time.monotonic()
            try:
                with connect() as connection:
                    for _ in range(keep):
                        begin = time.monotonic()
                        request(connection, at)
                        tally.latencies.append(time.monotonic() - begin)
                        at += 1
                        if time.monotonic() >= deadline:
                            break
                        time.sleep(pause)
            except OSError:
                tally.errors += 1
                tally.latencies.append(time.monotonic() - begin)
                time.sleep(pause)
    return lambda seconds: together(seconds, clients, body)


class Wire:
    """A connection with a buffer, for protocols of lines and lengths."""

    def __init__(self, port):
        self._socket = socket.create_connection(('127.0.0.1', port), ANSWER_WITHIN_S)
        self._file = self._socket.makefile('rb')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data)

    def line(self):
        line = self._file.readline()
        if not line:
            raise OSError('closed')
        return line

    def take(self, size):
        data = self._file.read(size)
        if len(data) < size:
            raise OSError('closed')
        return data


# ---- web servers

def http(paths, clients=3, keep=25, pause=0.002):
    def load(server, seconds, times=1):
        def request(wire, at):
            path = paths[at % len(paths)]
            wire.send(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
            length = 0
            while (line := wire.line()) != b'\r\n':
                if line.lower().startswith(b'content-length:'):
                    length = int(line.split(b':')[1])
            wire.take(length)
        return sockets(lambda: Wire(server.port), request, keep, pause, clients * times)(seconds)
    return load


# ---- redis and memcached

def redis(commands, clients=3, keep=25, pause=0.002):
    """Commands are tuples of words; {} in one is the number of the request."""
    def load(server, seconds, times=1):
        def reply(wire):
            line = wire.line()
            if line[:1] == b'$' and int(line[1:]) >= 0:
                wire.take(int(line[1:]) + 2)
            elif line[:1] == b'*':
                for _ in range(int(line[1:])):
                    reply(wire)
        def request(wire, at):
            words = [word.replace('{}', str(at % 500)).encode() for word in commands[at % len(commands)]]
            wire.send(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))
            reply(wire)
        return sockets(lambda: Wire(server.port), request, keep, pause, clients * times)(seconds)
    return load


def memcache(sizes, clients=3, keep=25, pause=0.002):
    def load(server, seconds, times=1):
        def request(wire, at):
            size = sizes[at % len(sizes)]
            if at % 4 == 0:
                wire.send(b'set k%d 0 0 %d\r\n%s\r\n' % (size, size, b'v' * size))
                wire.line()
                return
            wire.send(b'get k%d\r\n' % size)
            while (line := wire.line()) != b'END\r\n':
                wire.take(int(line.split()[3]) + 2)
        return sockets(lambda: Wire(server.port), request, keep, pause, clients * times)(seconds)
    return load


# ---- databases

def pgbench(script, clients=3, reconnect=False, pause_us=3000):
    """Transactions of one script; what pgbench measures, it measures for us."""
    def load(server, seconds, times=1):
        path = server.path(f'script-{zlib.crc32(script.encode())}.sql')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(script + f'\n\\sleep {pause_us} us\n')
        flags = ['-C'] if reconnect else []
        done = subprocess.run(['pgbench', '-n', '-h', server.folder, '-p', str(server.port), '-U', 'postgres',
                               '-c', str(clients * times), '-j', '1', '-T', str(max(1, round(seconds))), '-f', path,
                               *flags, 'postgres'], check=False, capture_output=True, text=True)
        said = dict(re.findall(r'^([a-z ]+)[:=] *([0-9.]+)', done.stdout.replace(' =', '='), re.MULTILINE))
        tally = Tally()
        tally.latencies = ([float(said.get('latency average', 0)) / 1000] *
                           int(said.get('number of transactions actually processed', 0)))
        tally.errors = 0 if done.returncode == 0 else 1
        return tally
    return load


def sessions(statements, clients=2, rounds=20, pause=0.01):
    """MariaDB: sessions of its own client, each of some rounds of the statements."""
    def load(server, seconds, times=1):
        text = ';\n'.join(statements * rounds) + ';\n'
        def body(tally, deadline, _):
            while time.monotonic() < deadline:
                begin = time.monotonic()
                done = subprocess.run(server.client('test'), input=text, text=True, check=False,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                tally.latencies += [(time.monotonic() - begin) / rounds] * rounds
                tally.errors += done.returncode != 0
                time.sleep(pause)
        return together(seconds, clients * times, body)
    return load


def statements(lists, pause=0.005):
    """sqlite3: one list of statements after the other."""
    def load(server, seconds, times=1):
        def body(tally, deadline, _):
            at = 0
            while time.monotonic() < deadline:
                begin = time.monotonic()
                server.ask(*lists[at % len(lists)])
                tally.latencies.append(time.monotonic() - begin)
                at += 1
                time.sleep(pause / times)
        return together(seconds, 1, body)
    return load


def both(*loads):
    """The loads beside one another."""
    def load(server, seconds, times=1):
        total = Tally()
        def body(_, __, number):
            total.add(loads[number](server, seconds, times))
        together(seconds, len(loads), body)
        return total
    return load

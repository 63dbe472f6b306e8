# SPDX-License-Identifier: Apache-2.0
"""A small web application, as people write them: pages from templates, a lock around
a counter file. Started as: python_server.py PORT FOLDER CHECK_EVERY

It looks whether templates have changed at every so many requests, and takes over a lock
that seems to have been left behind, after many attempts.
"""

import http.server
import itertools
import os
import re
import sys
import threading

FOLDER = sys.argv[2]
CHECK_EVERY = int(sys.argv[3])
LOCK = os.path.join(FOLDER, 'counter.lock')
COUNTER = os.open(os.path.join(FOLDER, 'counter'), os.O_RDWR)
TEMPLATES = [os.path.join(FOLDER, 'templates', f't{i}.html') for i in range(40)]
ATTEMPTS = 400

requests = itertools.count()
counting = threading.Lock()  # the lock in the file system is for other processes
changed = {}


def check_templates():
    for path in TEMPLATES:
        changed[path] = os.stat(path).st_mtime_ns


def render(name):
    with open(os.path.join(FOLDER, 'templates', name), encoding='utf-8') as file:
        text = file.read()
    with counting:
        return text.replace('{count}', str(count_visit())).encode()


def acquire_lock():
    for _ in range(ATTEMPTS):
        try:
            os.close(os.open(LOCK, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            continue
    return False


def count_visit():
    mine = acquire_lock()
    try:
        visits = int(os.pread(COUNTER, 20, 0) or 0) + 1
        os.pwrite(COUNTER, str(visits).encode(), 0)
        return visits
    finally:
        if mine:
            os.unlink(LOCK)


def search(text):
    return b'found' if re.match(r'(a|aa)+$', text) else b'not found'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        if next(requests) % CHECK_EVERY == 0:
            check_templates()
        if self.path.startswith('/search/'):
            body = search(self.path.removeprefix('/search/'))
        else:
            body = render('t%d.html' % (len(self.path) % len(TEMPLATES)))
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == '__main__':
    http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()

# SPDX-License-Identifier: Apache-2.0
"""Takes a case through its times: healthy ones, and the bad one."""

import contextlib

from harness import Failed


class Drive:
    """A running server of a case. start() and stop() are with it; run() is one time."""

    def __init__(self, session, case):
        self._session = session
        self.case = case
        self.server = None

    def __enter__(self):
        self._start({})
        return self

    def __exit__(self, *_):
        self.server.stop()

    def _start(self, settings):
        self.server = self.case.server(self._session, **self.case.settings | settings)
        self.server.start(with_faults=self.case.fault is not None)
        if self.case.prepare:
            self.case.prepare(self.server)
        # Caches, lazily bound functions, threads that are made when first needed.
        self.case.normal(self.server, 0.5)

    def restart(self, settings):
        """The same server with other settings, freshly set up."""
        self.server.stop()
        self._start(settings)

    def healthy(self, load, seconds, times=1):
        return load(self.server, seconds, times)

    def profiled(self, seconds):
        """What a profile is made under."""
        if self.case.staging:
            tally = self.case.normal(self.server, seconds / 2)
            tally.add(self.case.staging(self.server, seconds / 2))
            return tally
        tally = self.case.normal(self.server, seconds / 2)
        tally.add(self.case.other(self.server, seconds / 2))
        return tally

    @contextlib.contextmanager
    def trouble(self):
        """The bad time: between enter and exit the server is as the case spoils it."""
        if self.case.wrong:
            self.restart(self.case.wrong)
        if self.case.spoil:
            self.case.spoil(self.server)
        if self.case.fault:
            self.server.fault(**self.case.fault)
        try:
            yield self.case.trouble or self.case.normal
        finally:
            if self.case.fault:
                self.server.fault()
            if self.case.mend:
                with contextlib.suppress(Failed):
                    self.case.mend(self.server)

// SPDX-License-Identifier: Apache-2.0
//
// ProcessFamily: the processes that are one server: the first one and those of its
// descendants that run the same program (workers of nginx, backends of PostgreSQL).
// A look at /proc, costing some 10 µs a process of the machine; what is found may
// have ended by the time it is used. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace culprit::watch {

// Parents before children, the first one first; only that if it has no others.
std::vector<int64_t> ProcessFamily(int64_t pid);

// "/usr/sbin/nginx": what a process runs, once it has been the same for a while. A
// launcher (env, setpriv, a script that execs) becomes the program within moments.
// Empty: it ended meanwhile.
std::string SettledProgram(int64_t pid);

// Guards whose collector is gone: nobody reads them and nobody takes them out.
bool HasForsakenGuards(int64_t pid);

}  // namespace culprit::watch

// SPDX-License-Identifier: Apache-2.0
//
// How the runtime comes to life inside a program: preloaded, with the session's
// folder in the environment, or injected, by a call. Nothing else is exported.
#include <cstdlib>
#include <cstring>

#include "guard/runtime/session.h"
#include "guard/runtime/wire.h"

namespace {

using culprit::guard::runtime::EndSessionAtExit;
using culprit::guard::runtime::StartSession;
using culprit::guard::runtime::StopSession;

__attribute__((constructor)) void StartFromEnvironment() {
  const char* folder = getenv(culprit::guard::wire::kSessionVariable);
  if (folder != nullptr) StartSession(folder);
}

__attribute__((destructor)) void StopAtExit() { EndSessionAtExit(); }

}  // namespace

// 0: guards are in force; else session.h, SessionFailure.
extern "C" __attribute__((visibility("default"))) int culprit_guard_start(const char* folder) {
  return folder == nullptr ? -1 : static_cast<int>(StartSession(folder));
}

extern "C" __attribute__((visibility("default"))) void culprit_guard_stop() { StopSession(); }

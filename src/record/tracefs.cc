// SPDX-License-Identifier: Apache-2.0
#include "record/tracefs.h"

#include <sys/mount.h>
#include <unistd.h>

namespace culprit::record {
namespace {

bool HoldsEvents(const std::string& folder) {
  return access((folder + "/events").c_str(), R_OK | X_OK) == 0;
}

// In no folder of anybody: it is there as long as its descriptor, which is never closed.
std::string OwnTracefs() {
  const int context = fsopen("tracefs", FSOPEN_CLOEXEC);
  if (context < 0) return {};
  int mounted = -1;
  if (fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0) {
    mounted = fsmount(context, FSMOUNT_CLOEXEC, 0);
  }
  close(context);
  if (mounted < 0) return {};
  std::string folder = "/proc/self/fd/" + std::to_string(mounted);
  if (HoldsEvents(folder)) return folder;
  close(mounted);
  return {};
}

}  // namespace

std::string FindTracefs() {
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (HoldsEvents(folder)) return folder;
  }
  return OwnTracefs();
}

const std::string& TracefsFolder() {
  static const std::string folder = FindTracefs();
  return folder;
}

}  // namespace culprit::record

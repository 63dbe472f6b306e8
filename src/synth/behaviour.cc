// SPDX-License-Identifier: Apache-2.0
#include "synth/behaviour.h"

#include "base/check.h"

namespace culprit::synth {
namespace {

using trace::EventKind;

std::vector<Behaviour> MakeBugs() {
  std::vector<Behaviour> rows;
  rows.push_back({.plant = kFileTableLock,
                  .name = "file-table-lock",
                  .kind = "lock-chain",
                  .event_kind = EventKind::kWait,
                  .pattern = {"Browser!TabCreate", "Browser!RestoreSession", "kernel!OpenFile",
                              "fv.sys!QueryFileTable", "kernel!AcquireLock"},
                  .scenario = "BrowserTabCreate",
                  .chain = Chain{{"fv.sys!QueryFileTable", "fs.sys!AcquireMDU"},
                                 {"fv.sys!QueryFileTable", "fs.sys!AcquireMDU"},
                                 {"se.sys!ReadDecrypt", "DiskService"}}});
  rows.push_back({.plant = kShortPathName,
                  .name = "short-path-name",
                  .kind = "disk-fault",
                  .event_kind = EventKind::kWait,
                  .pattern = {"App!InitComponents", "App!GetHashCode", "kernel32!GetShortPathName",
                              "kernel!MmAccessFault"},
                  .scenario = "AppStartup"});
  rows.push_back(
      {.plant = kGlyphHotLoop,
       .name = "glyph-hot-loop",
       .kind = "cpu",
       .event_kind = EventKind::kRunning,
       .pattern = {"Browser!NavigatePage", "textlayout!ShapeParagraph", "textlayout!FindGlyph"},
       .scenario = "WebPageNavigation"});
  rows.push_back({.plant = kGraphicsHardFault,
                  .name = "graphics-hard-fault",
                  .kind = "hard-fault",
                  .event_kind = EventKind::kWait,
                  .pattern = {"Explorer!ShowMenu", "graphics.sys!LockSurface",
                              "graphics.sys!AcquireDeviceLock", "kernel!AcquireLock"},
                  .scenario = "MenuDisplay",
                  .chain = Chain{{"graphics.sys!AcquireDeviceLock", "graphics.sys!MapSurface"},
                                 {"graphics.sys!ReleaseDeviceLock", "fs.sys!PageIn"},
                                 {"se.sys!ReadDecrypt", "DiskService"}}});
  rows.push_back({.plant = kAcceptRetryLoop,
                  .name = "accept-retry-loop",
                  .kind = "syscall-retry",
                  .event_kind = EventKind::kSyscall,
                  .pattern = {"httpd!child_main", "httpd!unixd_accept", "libapr!apr_socket_accept"},
                  .scenario = "HttpRequest"});
  return rows;
}

std::vector<Behaviour> MakeNoise() {
  std::vector<Behaviour> rows;
  rows.push_back({.plant = kDiskProtection,
                  .name = "disk-protection",
                  .kind = "disk-protection",
                  .event_kind = EventKind::kWait,
                  .pattern = {"fs.sys!Read", "dp.sys!HoldUntilSettled", "kernel!WaitForObject"},
                  .scenario = "ExplorerOpenFolder",
                  .noise = true,
                  .by_design = true});
  rows.push_back(
      {.plant = kDirectDiskRead,
       .name = "direct-disk-read",
       .kind = "direct-hardware",
       .event_kind = EventKind::kWait,
       .pattern = {"Explorer!ReadThumbnail", "fs.sys!ReadDirect", "kernel!WaitForObject"},
       .scenario = "ExplorerOpenFolder",
       .noise = true});
  rows.push_back({.plant = kUserInput,
                  .name = "user-input",
                  .kind = "input",
                  .event_kind = EventKind::kWait,
                  .pattern = {"user32!GetMessage", "win32k.sys!WaitForInput"},
                  .scenario = "",
                  .noise = true});
  rows.push_back({.plant = kHousekeeping,
                  .name = "housekeeping-timer",
                  .kind = "timer",
                  .event_kind = EventKind::kWait,
                  .pattern = {"svchost!HousekeepingLoop", "kernel!DelayExecution"},
                  .scenario = "",
                  .noise = true});
  return rows;
}

}  // namespace

const std::vector<Behaviour>& Behaviours() {
  static const std::vector<Behaviour> rows = [] {
    std::vector<Behaviour> all = MakeBugs();
    for (Behaviour& row : MakeNoise()) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

const Behaviour& BehaviourOf(Plant plant) {
  CULPRIT_CHECK(plant > kOrdinary && plant < kPlantCount);
  const Behaviour& row = Behaviours()[plant - 1];
  CULPRIT_CHECK(row.plant == plant);
  return row;
}

std::optional<Plant> FindPlant(std::string_view name) {
  for (const Behaviour& row : Behaviours()) {
    if (row.name == name) return row.plant;
  }
  return std::nullopt;
}

PlantSet AllPlants() {
  PlantSet set;
  set.fill(true);
  return set;
}

PlantSet NoPlants() {
  PlantSet set;
  set.fill(false);
  return set;
}

}  // namespace culprit::synth

// SPDX-License-Identifier: Apache-2.0
//
// The stacks of planted behaviours. Each path holds the frames of its pattern
// (behaviour.cc) in order, with walks between them so that variants differ.
#include <algorithm>

#include "synth/world_builder.h"

namespace culprit::synth {
namespace {

constexpr std::string_view kStart = "ntdll!RtlUserThreadStart";
constexpr std::string_view kThunk = "kernel32!BaseThreadInitThunk";
constexpr std::string_view kPlantEntry = "kernel!SystemServiceEntry";

}  // namespace

// Figure 1 of 003, its six threads from the user interface to the disk.
void WorldBuilder::BuildTabCreatePlant() {
  PlantStacks& p = world_.plants_;
  const auto ui = [&](std::string_view step, std::string_view last, std::string_view leaf) {
    return Variants({kStart, kThunk, "Browser!Main", "user32!DispatchMessage", "Browser!TabCreate",
                     "*Browser", step, "kernelbase!CreateFile", "ntdll!NtCreateFile", kPlantEntry,
                     "kernel!OpenFile", "~1fv.sys", "fv.sys!QueryFileTable", last, leaf},
                    6);
  };
  p.ui_restore_session = ui("Browser!RestoreSession", "kernel!AcquireLock", "kernel!SwitchThread");
  p.ui_file_table = ui("Browser!LoadFavicon", "kernel!AcquireLock", "kernel!SwitchThread");
  p.ui_file_table_release = ui("Browser!LoadFavicon", "kernel!ReleaseLock", "kernel!ReadyThread");

  const auto worker = [&](std::string_view thread, std::string_view module, std::string_view call,
                          const Path& driver) {
    const std::string filler = "*" + std::string(module);
    Path path = {kStart, kThunk, thread, filler, "ntdll!NtCreateFile", kPlantEntry, call};
    path.insert(path.end(), driver.begin(), driver.end());
    return Variants(path, 4);
  };
  const Path table = {"~1fv.sys", "fv.sys!QueryFileTable"};
  const auto browser = [&](std::initializer_list<std::string_view> rest) {
    Path driver = table;
    driver.insert(driver.end(), rest);
    return worker("Browser!Worker", "Browser", "kernel!CreateFile", driver);
  };
  p.browser_file_table = browser({"kernel!AcquireLock", "kernel!SwitchThread"});
  p.browser_file_table_release = browser({"kernel!ReleaseLock", "kernel!ReadyThread"});
  p.browser_mdu =
      browser({"~1fs.sys", "fs.sys!AcquireMDU", "kernel!RequireResource", "kernel!SwitchThread"});
  p.browser_mdu_release =
      browser({"~1fs.sys", "fs.sys!AcquireMDU", "kernel!ReleaseResource", "kernel!ReadyThread"});

  const Path wait = {"fs.sys!AcquireMDU", "kernel!RequireResource", "kernel!SwitchThread"};
  const Path release = {"fs.sys!AcquireMDU", "kernel!ReleaseResource", "kernel!ReadyThread"};
  p.av_mdu = worker("AV!Worker", "AV", "kernel!OpenFile", wait);
  p.av_mdu_release = worker("AV!Worker", "AV", "kernel!OpenFile", release);
  p.cm_mdu = worker("CM!Worker", "CM", "kernel!OpenFile", wait);
  p.cm_mdu_release = worker("CM!Worker", "CM", "kernel!OpenFile", release);
  p.cm_wait_read = worker("CM!Worker", "CM", "kernel!OpenFile",
                          {"fs.sys!AcquireMDU", "kernel!WaitForObject", "kernel!SwitchThread"});

  const auto system = [&](std::initializer_list<std::string_view> rest) {
    Path path = {"kernel!ThreadStart", "kernel!Worker", "~2kernel", "fs.sys!Read"};
    path.insert(path.end(), rest);
    return Variants(path, 4);
  };
  p.system_read_disk =
      system({"se.sys!ReadDecrypt", "~1disk.sys", "storport.sys!StartIo", "kernel!WaitForObject"});
  p.system_decrypt = system({"se.sys!ReadDecrypt", "se.sys!DecryptBlocks"});
  p.system_read_reply = system({"kernel!SetEvent", "kernel!ReadyThread"});
}

// Figure 5 of 001: three common segments, different ways between them.
void WorldBuilder::BuildStartupPlant() {
  PlantStacks& p = world_.plants_;
  const Path first = {kStart,
                      kThunk,
                      "App!Main",
                      "App!Startup",
                      "*App",
                      "App!InitComponents",
                      "~2appcore",
                      "App!GetHashCode",
                      "kernel32!GetShortPathName"};
  const std::vector<Path> ways = {
      {"ntdll!NtQueryDirectoryFile", kPlantEntry, "~2fs.sys"},
      {"wow64!NtQueryDirectoryFile", "wow64cpu!CpuSimulate", "wow64cpu!TurboDispatch", kPlantEntry,
       "~2fs.sys"},
      {"ntdll!NtQueryDirectoryFile", kPlantEntry, "~2fv.sys", "~1fs.sys"},
      {"kernelbase!FindFirstFile", "ntdll!NtOpenFile", kPlantEntry, "kernel!OpenFile", "~2av.sys",
       "fs.sys!FindShortName"},
      {"wow64!NtOpenFile", "wow64cpu!CpuSimulate", kPlantEntry, "~3av.sys",
       "fs.sys!FindShortName"}};
  const Path last = {"kernel!MmAccessFault", "kernel!ResolveHardFault",
                     "kernel!PageRead",      "~1fs.sys",
                     "storport.sys!StartIo", "kernel!WaitForPage"};
  for (size_t i = 0; i < 2 * ways.size(); ++i) {
    Path path = first;
    const Path& way = ways[i % ways.size()];
    path.insert(path.end(), way.begin(), way.end());
    p.short_path_compute.stacks.push_back(MakeStack(path));
    path.insert(path.end(), last.begin(), last.end());
    p.short_path_fault.stacks.push_back(MakeStack(path));
  }
}

void WorldBuilder::BuildBugPlants() {
  PlantStacks& p = world_.plants_;
  const auto under = [&](std::initializer_list<std::string_view> rest, size_t count) {
    Path path = {kStart, kThunk};
    path.insert(path.end(), rest);
    return Variants(path, count);
  };
  p.find_glyph = under({"Browser!Main", "user32!DispatchMessage", "Browser!NavigatePage",
                        "*webview", "textlayout!ShapeParagraph", "~1textlayout",
                        "textlayout!FindGlyph", "textlayout!CompareGlyphKeys"},
                       8);
  p.menu_lock = under({"Explorer!Main", "user32!DispatchMessage", "Explorer!ShowMenu", "*Explorer",
                       "user32!TrackPopupMenu", "ntdll!NtUserTrackPopupMenu", kPlantEntry,
                       "~2win32k.sys", "graphics.sys!LockSurface", "graphics.sys!AcquireDeviceLock",
                       "kernel!AcquireLock", "kernel!SwitchThread"},
                      6);
  p.menu_lock_release =
      under({"Explorer!Main", "user32!DispatchMessage", "Explorer!ShowMenu", "*Explorer",
             "user32!TrackPopupMenu", "ntdll!NtUserTrackPopupMenu", kPlantEntry, "~2win32k.sys",
             "graphics.sys!ReleaseDeviceLock", "kernel!ReleaseLock", "kernel!ReadyThread"},
            4);
  const auto compositor = [&](std::initializer_list<std::string_view> rest) {
    Path path = {kStart,      kThunk,        "dwm!ComposeLoop", "*dwm", "ntdll!NtGdiPresent",
                 kPlantEntry, "~1win32k.sys"};
    path.insert(path.end(), rest);
    return Variants(path, 4);
  };
  p.compositor_lock =
      compositor({"graphics.sys!AcquireDeviceLock", "kernel!AcquireLock", "kernel!SwitchThread"});
  p.compositor_fault =
      compositor({"graphics.sys!MapSurface", "kernel!PageFault", "kernel!ResolveHardFault",
                  "kernel!WaitForPageWorker", "kernel!SwitchThread"});
  p.compositor_release =
      compositor({"graphics.sys!ReleaseDeviceLock", "kernel!ReleaseLock", "kernel!ReadyThread"});
  const auto system = [&](std::initializer_list<std::string_view> rest) {
    Path path = {"kernel!ThreadStart", "kernel!Worker", "kernel!PageWorker", "fs.sys!PageIn"};
    path.insert(path.end(), rest);
    return Variants(path, 3);
  };
  p.system_page_disk =
      system({"se.sys!ReadDecrypt", "~1disk.sys", "storport.sys!StartIo", "kernel!WaitForObject"});
  p.system_page_decrypt = system({"se.sys!ReadDecrypt", "se.sys!DecryptBlocks"});
  p.system_page_reply = system({"kernel!SetEvent", "kernel!ReadyThread"});
  p.accept_retry = Variants({"httpd!main", "httpd!make_child", "httpd!child_main", "~2httpd",
                             "httpd!unixd_accept", "libapr!apr_socket_accept", "libc!accept"},
                            4);
}

void WorldBuilder::BuildNoisePlants() {
  PlantStacks& p = world_.plants_;
  const auto folder = [&](std::initializer_list<std::string_view> rest) {
    Path path = {
        kStart,    kThunk, "Explorer!Main", "user32!DispatchMessage", "Explorer!OpenFolder",
        "*shell32"};
    path.insert(path.end(), rest);
    return Variants(path, 5);
  };
  p.hold_until_settled = folder({"kernelbase!ReadFile", "ntdll!NtReadFile", kPlantEntry,
                                 "kernel!ReadFile", "fs.sys!Read", "dp.sys!FilterRead",
                                 "dp.sys!HoldUntilSettled", "kernel!WaitForObject"});
  p.read_direct =
      folder({"Explorer!ReadThumbnail", "kernelbase!ReadFile", "ntdll!NtReadFile", kPlantEntry,
              "kernel!ReadFile", "fs.sys!ReadDirect", "kernel!WaitForObject"});
  // In the order of App, Browser, Explorer.
  for (std::string_view loop : {"App!Main", "Browser!Main", "Explorer!Main"}) {
    p.wait_for_input.stacks.push_back(
        MakeStack({kStart, kThunk, loop, "user32!GetMessage", "ntdll!NtUserGetMessage", kPlantEntry,
                   "win32k.sys!GetMessage", "win32k.sys!WaitForInput", "kernel!SwitchThread"}));
  }
  p.housekeeping =
      Variants({kStart, kThunk, "svchost!HousekeepingLoop", "kernelbase!SleepEx", "ntdll!NtDelay",
                kPlantEntry, "kernel!DelayExecution", "kernel!SwitchThread"},
               1);
}

}  // namespace culprit::synth

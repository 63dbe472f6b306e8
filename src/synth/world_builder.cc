// SPDX-License-Identifier: Apache-2.0
#include "synth/world_builder.h"

#include <algorithm>

#include "base/check.h"
#include "synth/scenario.h"

namespace culprit::synth {
namespace {

// The ways from a module's code into the kernel, by what a thread is up to.
struct Tails {
  std::vector<Path> compute, lock_wait, lock_release, request, request_wait, take, reply;
  std::vector<Path> disk_read, disk_write, sleep, start;
};

constexpr std::string_view kEntry = "kernel!SystemServiceEntry";

Tails WindowsTails() {
  Tails t;
  t.compute = {{},
               {},
               {},
               {},
               {"kernelbase!GetFileAttributes", "ntdll!NtQueryAttributes", kEntry, "~4fs.sys"},
               {"ntdll!RtlAllocateHeap", "ntdll!RtlpLowFragHeapAlloc"},
               {"gdi32!BitBlt", "ntdll!NtGdiBitBlt", kEntry, "~3win32k.sys"},
               {"ntdll!NtOpenKey", kEntry, "kernel!OpenKey", "~3kernel"}};
  t.lock_wait = {{"ntdll!RtlEnterCriticalSection", "ntdll!NtWaitForKeyedEvent", kEntry,
                  "kernel!WaitForKeyedEvent", "kernel!AcquireLock", "kernel!SwitchThread"},
                 {"kernelbase!CreateFile", "ntdll!NtCreateFile", kEntry, "kernel!CreateFile",
                  "~2fs.sys", "kernel!AcquireLock", "kernel!SwitchThread"},
                 {"kernelbase!RegQueryValue", "ntdll!NtQueryValueKey", kEntry, "~2kernel",
                  "kernel!AcquireResourceShared", "kernel!SwitchThread"}};
  t.lock_release = {{"ntdll!RtlLeaveCriticalSection", "ntdll!NtReleaseKeyedEvent", kEntry,
                     "kernel!ReleaseLock", "kernel!ReadyThread"},
                    {"kernelbase!CreateFile", "ntdll!NtCreateFile", kEntry, "kernel!CreateFile",
                     "~2fs.sys", "kernel!ReleaseLock", "kernel!ReadyThread"}};
  t.request = {{"rpcrt4!NdrClientCall", "ntdll!NtAlpcSendWaitReceivePort", kEntry,
                "kernel!AlpcSend", "kernel!ReadyThread"},
               {"kernelbase!PostQueuedCompletionStatus", "ntdll!NtSetIoCompletion", kEntry,
                "kernel!InsertQueue", "kernel!ReadyThread"}};
  t.request_wait = {{"rpcrt4!NdrClientCall", "ntdll!NtAlpcSendWaitReceivePort", kEntry,
                     "kernel!AlpcReceive", "kernel!WaitForObject", "kernel!SwitchThread"}};
  t.take = {{"ntdll!TppWorkerThread", "ntdll!NtRemoveIoCompletion", kEntry,
             "kernel!RemoveIoCompletion", "kernel!RemoveQueue", "kernel!SwitchThread"}};
  t.reply = {{"rpcrt4!NdrServerReply", "ntdll!NtAlpcSendWaitReceivePort", kEntry, "kernel!AlpcSend",
              "kernel!ReadyThread"}};
  t.disk_read = {{"kernelbase!ReadFile", "ntdll!NtReadFile", kEntry, "kernel!ReadFile", "~1av.sys",
                  "fs.sys!Read", "~2se.sys", "storport.sys!StartIo", "kernel!WaitForObject"},
                 {"kernelbase!ReadFile", "ntdll!NtReadFile", kEntry, "kernel!ReadFile", "~3fv.sys",
                  "fs.sys!Read", "~1disk.sys", "storport.sys!StartIo", "kernel!WaitForObject"},
                 {"kernel!PageFault", "kernel!ResolveFault", "kernel!PageRead", "fs.sys!PagingRead",
                  "~2se.sys", "storport.sys!StartIo", "kernel!WaitForPage"}};
  t.disk_write = {{"kernelbase!WriteFile", "ntdll!NtWriteFile", kEntry, "kernel!WriteFile",
                   "fs.sys!Write", "~2se.sys", "storport.sys!StartIo"}};
  t.sleep = {
      {"kernelbase!SleepEx", "ntdll!NtDelay", kEntry, "kernel!DelayThread", "kernel!SwitchThread"}};
  t.start = {{"kernelbase!WaitForMultipleObjects", "ntdll!NtWaitForMultipleObjects", kEntry,
              "kernel!WaitForMultipleObjects", "kernel!SwitchThread"}};
  return t;
}

Tails KernelTails() {
  Tails t;
  t.compute = {{}, {"~4fs.sys"}, {"~3net.sys"}};
  t.lock_wait = {{"~2fs.sys", "kernel!AcquireResourceShared", "kernel!SwitchThread"}};
  t.lock_release = {{"~2fs.sys", "kernel!ReleaseResource", "kernel!ReadyThread"}};
  t.request = {{"kernel!QueueWorkItem", "kernel!InsertQueue", "kernel!ReadyThread"}};
  t.request_wait = {{"kernel!WaitForWorkItem", "kernel!WaitForObject", "kernel!SwitchThread"}};
  t.take = {{"kernel!RemoveQueue", "kernel!SwitchThread"}};
  t.reply = {{"kernel!SetEvent", "kernel!ReadyThread"}};
  t.disk_read = {{"fs.sys!Read", "~2se.sys", "storport.sys!StartIo", "kernel!WaitForObject"}};
  t.disk_write = {{"fs.sys!Write", "~2se.sys", "storport.sys!StartIo"}};
  t.sleep = {{"kernel!DelayThread", "kernel!SwitchThread"}};
  t.start = {{"kernel!WaitForMultipleObjects", "kernel!SwitchThread"}};
  return t;
}

Tails LinuxTails() {
  Tails t;
  t.compute = {{}, {}, {"libc!malloc", "libc!int_malloc"}, {"libc!memcpy"}};
  t.lock_wait = {{"libc!pthread_mutex_lock", "libc!lll_lock_wait", "kernel!sys_futex",
                  "kernel!futex_wait", "kernel!schedule"}};
  t.lock_release = {{"libc!pthread_mutex_unlock", "kernel!sys_futex", "kernel!futex_wake",
                     "kernel!try_to_wake_up"}};
  t.request = {{"libc!write", "kernel!sys_write", "kernel!pipe_write", "kernel!try_to_wake_up"}};
  t.request_wait = {{"libc!poll", "kernel!sys_ppoll", "kernel!do_poll", "kernel!schedule"}};
  t.take = {{"libc!epoll_wait", "kernel!sys_epoll_pwait", "kernel!ep_poll", "kernel!schedule"}};
  t.reply = {{"libc!send", "kernel!sys_sendto", "kernel!tcp_sendmsg", "kernel!sock_def_readable",
              "kernel!try_to_wake_up"}};
  t.disk_read = {{"libc!read", "kernel!sys_read", "kernel!filemap_read", "kernel!folio_wait_bit",
                  "kernel!io_schedule"}};
  t.disk_write = {{"libc!write", "kernel!sys_write", "kernel!submit_bio"}};
  t.sleep = {{"libc!nanosleep", "kernel!sys_nanosleep", "kernel!do_nanosleep", "kernel!schedule"}};
  t.start = {{"libc!select", "kernel!sys_pselect6", "kernel!do_select", "kernel!schedule"}};
  return t;
}

Path Join(const Path& first, const Path& second) {
  Path joined = first;
  joined.insert(joined.end(), second.begin(), second.end());
  return joined;
}

constexpr size_t kServerDepth = 18;

// A frame without a module (trace/dictionary.h).
constexpr std::string_view kTruncated = "![truncated]";

}  // namespace

World::World(uint64_t seed, size_t mean_depth) { WorldBuilder(seed, mean_depth, *this).Build(); }

WorldBuilder::WorldBuilder(uint64_t seed, size_t mean_depth, World& world)
    : graph_(seed),
      random_(seed, 0x776f726c64),
      mean_depth_(mean_depth),
      depth_(mean_depth),
      world_(world) {}

void WorldBuilder::Build() {
  world_.timer_interrupt_ =
      MakeStack({"kernel!InterruptService", "kernel!ClockInterrupt", "kernel!ExpireTimers"});
  world_.input_interrupt_ =
      MakeStack({"kernel!InterruptService", "win32k.sys!InputInterrupt", "win32k.sys!QueueInput"});
  world_.disk_interrupt_ =
      MakeStack({"kernel!InterruptService", "storport.sys!CompleteRequest", "kernel!SetEvent"});
  BuildCodes();
  BuildScenarios();
  BuildHttpCalls();
  BuildTabCreatePlant();
  BuildStartupPlant();
  BuildBugPlants();
  BuildNoisePlants();
}

WorldStack WorldBuilder::Extend(WorldStack parent, std::string_view module,
                                std::string_view function) {
  std::string name(module);
  name.append("!").append(function);
  const auto [at, added] = frames_.emplace(std::move(name), world_.frames_.size());
  if (added) {
    world_.frames_.push_back({.module = std::string(module),
                              .function = std::string(function),
                              .kernel_mode = IsKernelModule(module)});
  }
  const uint64_t key = (static_cast<uint64_t>(parent) << 32) | at->second;
  const auto [node, fresh] = stacks_.emplace(key, world_.stacks_.size());
  if (fresh) {
    const uint32_t depth = parent == kNoStack ? 1 : world_.stacks_[parent].depth + 1;
    world_.stacks_.push_back({.parent = parent, .frame = at->second, .depth = depth});
  }
  return node->second;
}

WorldStack WorldBuilder::MakeStack(const Path& path) {
  size_t fixed = 0;
  for (std::string_view step : path) {
    fixed += step[0] == '~' ? static_cast<size_t>(step[1] - '0') : step[0] == '*' ? 0 : 1;
  }
  const size_t wanted = depth_ + random_.Below(depth_ / 2 + 1);
  const size_t filler = wanted > fixed + 3 ? wanted - fixed : 3;
  WorldStack stack = kNoStack;
  std::vector<FunctionIndex> walk;
  for (std::string_view step : path) {
    if (step[0] == '~' || step[0] == '*') {
      const bool is_filler = step[0] == '*';
      walk.clear();
      graph_.Walk(step.substr(is_filler ? 1 : 2),
                  is_filler ? filler : static_cast<size_t>(step[1] - '0'), random_, walk);
      for (FunctionIndex f : walk) {
        stack =
            Extend(stack, graph_.ModuleName(graph_.function(f).module), graph_.function(f).name);
      }
      continue;
    }
    const size_t bang = step.find('!');
    CULPRIT_CHECK(bang != std::string_view::npos);
    stack = Extend(stack, step.substr(0, bang), step.substr(bang + 1));
  }
  return stack;
}

StackPool WorldBuilder::MakePool(const Path& root, std::string_view module,
                                 const std::vector<Path>& tails, size_t count) {
  const std::string filler = "*" + std::string(module);
  StackPool pool;
  for (size_t i = 0; i < count; ++i) {
    Path path = root;
    if (!module.empty()) path.push_back(filler);
    pool.stacks.push_back(MakeStack(Join(path, tails[i % tails.size()])));
  }
  return pool;
}

StackPool WorldBuilder::Variants(const Path& path, size_t count) {
  StackPool pool;
  for (size_t i = 0; i < count; ++i) pool.stacks.push_back(MakeStack(path));
  return pool;
}

// All stacks of a kind of thread share the way to its loop, made once; idle
// waits stand right under it, everything else lies deeper.
Code WorldBuilder::MakeCode(Family family, const Path& thread, std::string_view module) {
  static const Tails kTails[] = {WindowsTails(), KernelTails(), LinuxTails()};
  const Tails& tails = kTails[static_cast<size_t>(family)];
  const std::vector<std::string> loop = MakeLoop(module);
  const Path root = Join(thread, Path(loop.begin(), loop.end()));
  Code code;
  code.compute = MakePool(root, module, tails.compute, 64);
  // Once in a while a stack walk gives up before it reaches the thread's start.
  const std::string filler = "*" + std::string(module);
  code.compute.stacks[40] = MakeStack({kTruncated, filler});
  code.lock_wait = MakePool(root, module, tails.lock_wait, 12);
  code.lock_release = MakePool(root, module, tails.lock_release, 8);
  code.request = MakePool(root, module, tails.request, 10);
  code.request_wait = MakePool(root, module, tails.request_wait, 14);
  code.reply = MakePool(root, module, tails.reply, 8);
  code.disk_read = MakePool(root, module, tails.disk_read, 15);
  code.disk_write = MakePool(root, module, tails.disk_write, 6);
  code.sleep = MakePool(root, module, tails.sleep, 4);
  code.take = MakePool(root, "", tails.take, 1);
  code.start = MakePool(root, "", tails.start, 1);
  return code;
}

std::vector<std::string> WorldBuilder::MakeLoop(std::string_view module) {
  std::vector<FunctionIndex> walk;
  graph_.Walk(module, mean_depth_ > depth_ ? 3 : depth_ * 2 / 3, random_, walk);
  std::vector<std::string> names;
  for (FunctionIndex f : walk) {
    names.push_back(std::string(graph_.ModuleName(graph_.function(f).module)) + "!" +
                    graph_.function(f).name);
  }
  return names;
}

void WorldBuilder::BuildCodes() {
  const Path user = {"ntdll!RtlUserThreadStart", "kernel32!BaseThreadInitThunk"};
  const auto windows = [&](std::string_view root, std::string_view module) {
    return MakeCode(Family::kWindows, Join(user, {root}), module);
  };
  std::vector<Code>& codes = world_.codes_;
  codes.resize(static_cast<size_t>(Kind::kCount));
  const auto at = [&](Kind kind) -> Code& { return codes[static_cast<size_t>(kind)]; };
  at(Kind::kBrowserWorker) = windows("Browser!Worker", "Browser");
  at(Kind::kExplorerWorker) = windows("Explorer!Worker", "Explorer");
  at(Kind::kService) = windows("svchost!ServiceWorker", "svchost");
  at(Kind::kAntiVirus) = windows("AV!Worker", "AV");
  at(Kind::kConfiguration) = windows("CM!Worker", "CM");
  at(Kind::kSystemWorker) =
      MakeCode(Family::kKernel, {"kernel!ThreadStart", "kernel!Worker"}, "kernel");
  at(Kind::kCompositor) = windows("dwm!ComposeLoop", "dwm");
  at(Kind::kScheduler) = windows("svchost!TaskScheduler", "svchost");
  at(Kind::kLauncher) = windows("Explorer!LaunchWorker", "shell32");
  at(Kind::kStageA) = windows("svchost!CollectorThread", "svchost");
  at(Kind::kStageB) = windows("appcore!TransformThread", "appcore");
  at(Kind::kStageC) = windows("webview!LayoutThread", "webview");
  at(Kind::kStageD) = windows("avengine!ScanThread", "avengine");
  depth_ = std::min(mean_depth_, kServerDepth);
  const Path server = {"libc!start_thread"};
  at(Kind::kHttpListener) =
      MakeCode(Family::kLinux, Join(server, {"httpd!listener_thread"}), "httpd");
  at(Kind::kHttpWorker) = MakeCode(
      Family::kLinux, Join(server, {"httpd!worker_thread", "httpd!process_request"}), "httpd");
  at(Kind::kHttpClient) = MakeCode(Family::kLinux, Join(server, {"netd!client_loop"}), "libapr");
  depth_ = mean_depth_;
}

void WorldBuilder::BuildScenarios() {
  const auto add = [&](std::string_view loop, std::string_view root, std::string_view module) {
    world_.scenarios_.push_back(
        MakeCode(Family::kWindows,
                 {"ntdll!RtlUserThreadStart", "kernel32!BaseThreadInitThunk", loop,
                  "user32!DispatchMessage", "user32!UserCallWinProc", root},
                 module));
  };
  for (const ScenarioSpec& row : NamedScenarios()) {
    switch (row.process) {
      case UiProcess::kBrowser:
        add("Browser!Main", row.root, "Browser");
        break;
      case UiProcess::kExplorer:
        add("Explorer!Main", row.root, "Explorer");
        break;
      case UiProcess::kApp:
        add("App!Main", row.root, "App");
        break;
    }
  }
  constexpr std::string_view kModules[] = {"shell32", "appcore",          "webview", "msxml",
                                           "ole32",   "fabrikam_toolbar", "propsys", "contoso_ext"};
  for (size_t i = 0; i < 16; ++i) {
    const std::string root = "appcore!RunActivity" + std::to_string(i);
    add("App!Main", root, kModules[i % std::size(kModules)]);
  }
}

void WorldBuilder::BuildHttpCalls() {
  depth_ = std::min(mean_depth_, kServerDepth);
  for (const HttpCall& call : HttpCalls()) {
    const std::string wrapper = "libc!" + std::string(call.name);
    world_.http_calls_.push_back(Variants(
        {"libc!start_thread", "httpd!worker_thread", "httpd!process_request", "*httpd", wrapper},
        6));
  }
  depth_ = mean_depth_;
}

}  // namespace culprit::synth

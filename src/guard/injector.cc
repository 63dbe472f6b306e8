// SPDX-License-Identifier: Apache-2.0
#include "guard/injector.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "guard/guarded_process.h"
#include "guard/proc_file.h"
#include "guard/process_image.h"
#include "guard/remote_call.h"
#include "guard/session_folder.h"
#include "guard/thread_stop.h"
#include "symbol/elf_file.h"

namespace culprit::guard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRuntimeFile = "libculprit_guard.so";
constexpr uint64_t kNow = 2;  // RTLD_NOW
constexpr uint64_t kMs = 1'000'000;
constexpr int64_t kReleasePatienceMs = 1000;

// Where a function of a module is in the process; 0: it has none.
uint64_t RemoteFunction(const ProcessImage& image, std::string_view module, std::string_view name) {
  for (const MappedCode& code : image.code()) {
    if (BaseName(code.path) != module) continue;
    const Result<symbol::ElfFile> file = symbol::ElfFile::Open(code.path);
    if (!file.ok()) continue;
    const symbol::Section* table = file.value().FindSection(".dynsym");
    const std::optional<uint64_t> address = file.value().AddressOfOffset(code.file_offset);
    if (table == nullptr || !address || table->header.sh_entsize == 0) continue;
    Elf_Data* data = elf_getdata(table->handle, nullptr);
    const auto count = static_cast<int>(table->header.sh_size / table->header.sh_entsize);
    for (int i = 0; data != nullptr && i < count; ++i) {
      GElf_Sym symbol = {};
      if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_value == 0) continue;
      const char* text = elf_strptr(file.value().handle(), table->header.sh_link, symbol.st_name);
      if (text != nullptr && name == text) return code.begin - *address + symbol.st_value;
    }
  }
  return 0;
}

struct RemoteLoader {
  RemoteMapping mapping;
  uint64_t dlopen = 0;
  uint64_t dlerror = 0;
};

Result<RemoteLoader> FindLoader(const ProcessImage& image) {
  RemoteLoader loader;
  loader.mapping.mmap = RemoteFunction(image, "libc.so.6", "mmap");
  loader.mapping.munmap = RemoteFunction(image, "libc.so.6", "munmap");
  for (const std::string_view module : {"libc.so.6", "libdl.so.2"}) {
    if (loader.dlopen == 0) loader.dlopen = RemoteFunction(image, module, "dlopen");
    if (loader.dlerror == 0) loader.dlerror = RemoteFunction(image, module, "dlerror");
  }
  if (loader.mapping.mmap != 0 && loader.mapping.munmap != 0 && loader.dlopen != 0) return loader;
  return Error{.message = "the process has no C library of GNU that could load the guards",
               .hint = "static programs, Go and musl cannot be guarded"};
}

// What a program reads its input from: not a file, which the loader reads, too.
bool IsStream(std::string_view link) {
  return link.starts_with("pipe:") || link.starts_with("socket:") ||
         link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") ||
         link == "anon_inode:[eventfd]";
}

// A thread that waits for events holds none of the C library's locks. A wait for
// a lock is a plain FUTEX_WAIT; condition variables use FUTEX_WAIT_BITSET.
bool SleepsSafely(int64_t pid, const SystemCallPlace& place) {
  constexpr uint64_t kFutexCommand = 127;
  constexpr uint64_t kWaitBitset = 9;
  if (place.running || place.number < 0) return false;
  switch (place.number) {
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
    case SYS_poll:
    case SYS_select:
#endif
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
    case SYS_epoll_pwait:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_wait4:
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend:
    case SYS_io_getevents:
    case SYS_semtimedop:
      return true;
    case SYS_read:
    case SYS_readv:
      return IsStream(ProcLink(pid, "fd/" + std::to_string(place.arguments[0])));
    case SYS_futex:
      return (place.arguments[1] & kFutexCommand) == kWaitBitset;
    default:
      return false;
  }
}

struct HeldThread {
  ThreadStop stop;
  SystemCallPlace before;
  int64_t tid = 0;
};

// The first thread whose sleep is safe and still the same after the stop.
std::optional<HeldThread> HoldSleeper(int64_t pid) {
  for (const int64_t tid : ThreadsOf(pid)) {
    const auto before = ReadSystemCallPlace(pid, tid);
    if (!before.ok() || !SleepsSafely(pid, before.value())) continue;
    auto stop = ThreadStop::Stop(pid, tid);
    if (!stop.ok()) continue;
    const auto registers = stop.value().Registers();
    if (!registers.ok()) continue;
    const uint64_t place = ToCallFrame(registers.value()).pc;
    // The kernel may have stepped back to the call's instruction already.
    const uint64_t expected = before.value().program_counter;
    if (place <= expected && expected - place <= 4) {
      return HeldThread{std::move(stop).value(), before.value(), tid};
    }
  }
  return std::nullopt;
}

Result<HeldThread> HoldThread(int64_t pid, int64_t patience_ms) {
  const uint64_t begin_ns = GuardClockNs();
  const uint64_t patience_ns = static_cast<uint64_t>(patience_ms) * kMs;
  while (GuardClockNs() - begin_ns < patience_ns / 2) {
    auto held = HoldSleeper(pid);
    if (held) return std::move(*held);
    if (ThreadsOf(pid).empty()) return Error{.message = "the process ended"};
    usleep(500);
  }
  // Busy without a pause: stopped where its next wait for events returns.
  CULPRIT_ASSIGN(ThreadStop stop, ThreadStop::Stop(pid, pid));
  CULPRIT_TRY(stop.RunUntilEventWaitEnds(patience_ms / 2));
  SystemCallPlace running;
  running.running = true;
  return HeldThread{std::move(stop), running, pid};
}

struct HeldOthers {
  std::vector<ThreadStop> stops;
  std::vector<wire::HeldThread> places;
};

// The others, while code is written that they may be about to run.
HeldOthers HoldOthers(int64_t pid, int64_t except) {
  HeldOthers held;
  for (const int64_t tid : ThreadsOf(pid)) {
    if (tid == except) continue;
    const auto before = ReadSystemCallPlace(pid, tid);
    auto stop = ThreadStop::Stop(pid, tid);
    if (!stop.ok()) continue;
    const auto registers = stop.value().Registers();
    if (before.ok() && registers.ok()) {
      static_cast<void>(
          stop.value()
              .SetRegisters(stop.value().Restarting(registers.value(), before.value()))
              .ok());
    }
    if (registers.ok()) {
      held.places.push_back({static_cast<uint64_t>(tid), ToCallFrame(registers.value()).pc});
    }
    held.stops.push_back(std::move(stop).value());
  }
  return held;
}

// In the session, for the runtime, as long as this object is there.
class HeldThreadsFile {
 public:
  HeldThreadsFile(const std::string& session, int64_t pid, const HeldOthers& held)
      : path_(session + "/held." + std::to_string(pid)) {
    const std::string_view bytes(reinterpret_cast<const char*>(held.places.data()),
                                 held.places.size() * sizeof(wire::HeldThread));
    // Without it fewer functions can be patched.
    if (!held.places.empty() && WriteWholeFile(path_, bytes, Overwrite::kAllow).ok()) {
      chmod(path_.c_str(), 0644);
    }
  }
  ~HeldThreadsFile() { unlink(path_.c_str()); }
  HeldThreadsFile(const HeldThreadsFile&) = delete;
  HeldThreadsFile& operator=(const HeldThreadsFile&) = delete;

 private:
  std::string path_;
};

Result<std::string> RemoteText(int64_t pid, uint64_t address) {
  char text[512] = {};
  const size_t got = address == 0 ? 0 : ReadRemoteMemory(pid, address, text, sizeof(text) - 1);
  return got == 0 ? std::string("dlopen failed") : std::string(text);
}

Result<InjectOutcome> StartInside(int64_t pid, RemoteCall& call, const RemoteLoader& loader,
                                  const std::string& runtime, const std::string& session,
                                  int64_t tid, const InjectOptions& options) {
  CULPRIT_ASSIGN(const uint64_t path, call.PutText(runtime));
  CULPRIT_ASSIGN(const uint64_t folder, call.PutText(session));
  CULPRIT_ASSIGN(const uint64_t handle, call.Call(loader.dlopen, {path, kNow}));
  if (handle == 0) {
    std::string why = "dlopen failed";
    if (loader.dlerror != 0) {
      CULPRIT_ASSIGN(const uint64_t text, call.Call(loader.dlerror, {}));
      CULPRIT_ASSIGN(why, RemoteText(pid, text));
    }
    return Error{.message = "the process could not load the guards: " + why, .file = runtime};
  }
  CULPRIT_ASSIGN(const ProcessImage image, ProcessImage::Read(pid));
  const uint64_t start = RemoteFunction(image, BaseName(runtime), "culprit_guard_start");
  if (start == 0) return Error{.message = "has no culprit_guard_start", .file = runtime};
  HeldOthers others;
  if (options.hold_all_threads) others = HoldOthers(pid, tid);
  const HeldThreadsFile places(session, pid, others);
  CULPRIT_ASSIGN(const uint64_t result, call.Call(start, {folder}));
  return InjectOutcome{.tid = tid, .start_result = result & UINT32_MAX};
}

bool SameMountNamespace(int64_t pid) {
  struct stat own = {};
  struct stat other = {};
  return stat("/proc/self/ns/mnt", &own) == 0 &&
         stat(ProcPath(pid, "ns/mnt").c_str(), &other) == 0 && own.st_ino == other.st_ino;
}

}  // namespace

Result<std::string> ProgramOf(int64_t pid) {
  const std::string who = "process " + std::to_string(pid);
  if (access(ProcPath(pid, "task").c_str(), F_OK) != 0) {
    return Error{.message = "there is no " + who};
  }
  std::string program = ProcLink(pid, "exe");
  if (program.empty()) {
    return Error{.message = who + " is not ours to look at", .hint = "be root or its user"};
  }
  return program;
}

Status CheckAttachable(int64_t pid, const std::string& runtime, const InjectOptions& options) {
  const std::string who = "process " + std::to_string(pid);
  if (const auto program = ProgramOf(pid); !program.ok()) return program.error();
  const std::string tracer = ProcStatusField(pid, "TracerPid");
  if (!tracer.empty() && tracer != "0") {
    return Error{.message = who + " is held by the debugger " + tracer};
  }
  if (!options.allow_seccomp && ProcStatusField(pid, "Seccomp") == "2") {
    return Error{.message = who +
                            " has a seccomp filter, which may kill it for what guards need "
                            "(mmap, mprotect, openat)",
                 .hint =
                     "start it with culprit guard run, or attach with --allow-seccomp if its "
                     "filter lets these pass"};
  }
  if (!SameMountNamespace(pid) && access((ProcPath(pid, "root") + runtime).c_str(), R_OK) != 0) {
    return Error{.message = who + " lives in another mount namespace and does not see " + runtime,
                 .hint = "run culprit inside its container"};
  }
  CULPRIT_ASSIGN(const ProcessImage image, ProcessImage::Read(pid));
  CULPRIT_TRY(FindLoader(image));
  return {};
}

Result<InjectOutcome> InjectRuntime(int64_t pid, const std::string& runtime,
                                    const std::string& session, const InjectOptions& options) {
  CULPRIT_TRY(CheckAttachable(pid, runtime, options));
  CULPRIT_ASSIGN(const ProcessImage image, ProcessImage::Read(pid));
  CULPRIT_ASSIGN(const RemoteLoader loader, FindLoader(image));
  CULPRIT_ASSIGN(HeldThread held, HoldThread(pid, options.patience_ms));
  const uint64_t begin_ns = GuardClockNs();
  CULPRIT_ASSIGN(RemoteCall call, RemoteCall::Begin(pid, held.stop, held.before, loader.mapping));
  Result<InjectOutcome> outcome =
      StartInside(pid, call, loader, runtime, session, held.tid, options);
  CULPRIT_TRY(call.Finish());
  if (outcome.ok()) outcome.value().held_ns = GuardClockNs() - begin_ns;
  return outcome;
}

// The runtime answers a start by taking an ended session back first, and then
// finds that there is nothing to start.
uint64_t ReleaseSleepers(const std::string& session) {
  const auto runtime = FindRuntime();
  const auto holds = [&](int64_t pid) {
    const auto process = GuardedProcess::Open(session, pid);
    return process.ok() && process.value().alive() && !process.value().Counters().ended;
  };
  uint64_t holding = 0;
  for (const int64_t pid : ProcessesIn(session)) {
    if (!holds(pid)) continue;
    InjectOptions options;
    options.patience_ms = kReleasePatienceMs;
    if (runtime.ok()) static_cast<void>(InjectRuntime(pid, runtime.value(), session, options).ok());
    if (holds(pid)) ++holding;
  }
  return holding;
}

Result<std::string> FindRuntime() {
  const char* given = getenv("CULPRIT_GUARD_RUNTIME");
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  std::vector<fs::path> candidates;
  if (given != nullptr && *given != 0) {
    candidates.emplace_back(fs::absolute(given, code));
  } else {
    candidates.push_back(folder / kRuntimeFile);
    for (const char* library : {"lib", "lib64"}) {
      candidates.push_back(folder.parent_path() / library / "culprit" / kRuntimeFile);
      for (const char* triplet : {"aarch64-linux-gnu", "x86_64-linux-gnu"}) {
        candidates.push_back(folder.parent_path() / library / triplet / "culprit" / kRuntimeFile);
      }
    }
  }
  for (const fs::path& path : candidates) {
    if (access(path.c_str(), R_OK) == 0) return path.lexically_normal().string();
  }
  return Error{.message = "the guard runtime " + std::string(kRuntimeFile) + " is not there",
               .file = candidates.front().string(),
               .hint = "install culprit whole, or name it in CULPRIT_GUARD_RUNTIME"};
}

}  // namespace culprit::guard

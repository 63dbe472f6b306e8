// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_feed.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "record/cpu_allowance.h"
#include "record/machine.h"

namespace culprit::record {
namespace {

constexpr int kIdleMs = 1000;
constexpr int kLimitedMs = 20;
constexpr int kFeedNice = -5;
constexpr int64_t kLeastPauseNs = 10'000'000;
constexpr int64_t kMostPauseNs = 1'000'000'000;
constexpr size_t kStackWindow = 16 << 10;
constexpr size_t kModulesAtOnce = 4;

// What nearly every process has.
bool IsCommon(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("ld-") || name.starts_with("libstdc++") ||
         name == "[vdso]";
}

bool IsThisProgram(int64_t pid) {
  struct stat own = {};
  struct stat other = {};
  return stat("/proc/self/exe", &own) == 0 &&
         stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// A thread's memory: its stack in one piece, all else word by word.
class RemoteMemory {
 public:
  RemoteMemory(int64_t pid, uint64_t stack_pointer)
      : pid_(static_cast<pid_t>(pid)), start_(stack_pointer), window_(kStackWindow) {
    window_.resize(Copy(start_, window_.data(), window_.size()));
  }

  bool Read(uint64_t address, void* to, size_t bytes) const {
    if (address >= start_ && window_.size() >= bytes &&
        address - start_ <= window_.size() - bytes) {
      memcpy(to, window_.data() + (address - start_), bytes);
      return true;
    }
    return Copy(address, static_cast<char*>(to), bytes) == bytes;
  }

 private:
  size_t Copy(uint64_t address, char* to, size_t bytes) const {
    // Up to the next page, which may be the end of the stack, and then the rest.
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const size_t first = std::min<uint64_t>(bytes, page - address % page);
    const iovec local = {.iov_base = to, .iov_len = bytes};
    // NOLINTBEGIN(performance-no-int-to-ptr): they are addresses of another process
    iovec remote[1 + kStackWindow / 4096];
    remote[0] = {.iov_base = reinterpret_cast<void*>(address), .iov_len = first};
    size_t count = 1;
    for (size_t at = first; at < bytes && count < std::size(remote); at += page) {
      remote[count++] = {.iov_base = reinterpret_cast<void*>(address + at),
                         .iov_len = std::min<uint64_t>(page, bytes - at)};
    }
    // NOLINTEND(performance-no-int-to-ptr)
    const ssize_t got = process_vm_readv(pid_, &local, 1, remote, count, 0);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }

  pid_t pid_;
  uint64_t start_;
  std::vector<char> window_;
};

}  // namespace

Result<std::unique_ptr<UnwindFeed>> UnwindFeed::Start(const UnwindMapFds& fds) {
  CULPRIT_ASSIGN(std::unique_ptr<UnwindMaps> maps, UnwindMaps::Open(fds));
  std::unique_ptr<UnwindFeed> feed(new UnwindFeed(std::move(maps)));
  // Signals are for the thread that records.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  feed->thread_ = std::thread([f = feed.get()] { f->Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return feed;
}

UnwindFeed::~UnwindFeed() {
  stop_ = true;
  maps_->Wake();
  if (thread_.joinable()) thread_.join();
}

void UnwindFeed::Look(const std::vector<int64_t>& pids) {
  {
    const std::lock_guard lock(inbox_mutex_);
    wanted_.insert(pids.begin(), pids.end());
    ++looks_;
  }
  maps_->Wake();
}

void UnwindFeed::Settle(int64_t max_ns) {
  const int64_t begin_ns = MonotonicNs();
  while (looks_done_ != looks_ && MonotonicNs() - begin_ns < max_ns) poll(nullptr, 0, 1);
}

void UnwindFeed::See(const std::vector<LifeEvent>& events) {
  bool any = false;
  {
    const std::lock_guard lock(inbox_mutex_);
    for (const LifeEvent& event : events) {
      const bool of_code =
          event.kind == LifeEvent::Kind::kMap || event.kind == LifeEvent::Kind::kExec ||
          (event.kind == LifeEvent::Kind::kFork && event.pid != event.parent_pid) ||
          (event.kind == LifeEvent::Kind::kExit && event.pid == event.tid);
      if (of_code) inbox_.push_back(event);
      any = any || of_code;
    }
  }
  if (any) maps_->Wake();
}

void UnwindFeed::LookAtProgram(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const MapEntry whole = {.start = 0, .end = 0, .file_offset = 0, .path = path};
  UnwindModule* module = modules_.Find(getpid(), whole);
  if (module != nullptr && module->state == UnwindModule::State::kNew) fresh_.push_back(module);
}

// ---- its thread -------------------------------------------------------------

void UnwindFeed::Run() {
  // As the recorder: stacks are worse until it is done. Not possible for everybody.
  setpriority(PRIO_PROCESS, 0, kFeedNice);
  Warm();
  CpuAllowance allowance;
  int wait_ms = 0;
  while (!stop_) {
    std::set<int64_t> pids;
    std::vector<UnwindRequest> requests;
    maps_->Wait(wait_ms, [&](const UnwindRequest& request) { requests.push_back(request); });
    std::vector<LifeEvent> events;
    uint64_t looks = 0;
    {
      const std::lock_guard lock(inbox_mutex_);
      events.swap(inbox_);
      pids.merge(wanted_);
      wanted_.clear();
      looks = looks_;
    }
    {
      const std::lock_guard lock(mutex_);
      std::set<int64_t> changed;
      for (const LifeEvent& event : events) {
        Apply(event);
        const bool moved =
            event.kind == LifeEvent::Kind::kMap || event.kind == LifeEvent::Kind::kExec;
        if (moved && processes_.contains(event.pid)) changed.insert(event.pid);
      }
      pids.merge(changed);
      for (const UnwindRequest& request : requests) {
        if (!IsAnswered(request)) pids.insert(request.tgid);
      }
      for (const int64_t pid : pids) LookAt(pid);
    }
    if (!allowance.Allows(share_, MonotonicNs(), ThreadCpuNs())) {
      wait_ms = kLimitedMs;
    } else if (CompileOne()) {
      wait_ms = 0;
    } else {
      wait_ms = kIdleMs;
      looks_done_ = looks;
    }
  }
}

// So that the first stacks of a program that starts need not wait for them.
void UnwindFeed::Warm() {
  const std::lock_guard lock(mutex_);
  for (const Mapping& mapping : CodeOf(getpid())) {
    if (mapping.module == nullptr || !IsCommon(mapping.map.path)) {
      std::erase(fresh_, mapping.module);
    }
  }
}

void UnwindFeed::Apply(const LifeEvent& event) {
  if (event.kind == LifeEvent::Kind::kExit) {
    if (processes_.erase(event.pid) == 0) return;
    lists_.Forget(event.pid, MonotonicNs());
    maps_->ForgetProcess(event.pid);
  }
  if (event.kind != LifeEvent::Kind::kFork) return;
  const auto parent = processes_.find(event.parent_pid);
  if (parent == processes_.end()) return;
  const Process child = parent->second;
  processes_[event.pid] = child;
  const UnwindList* list = lists_.Share(event.parent_pid, event.pid, MonotonicNs());
  if (list == nullptr) return;
  maps_->SetProcess(event.pid, {.first = list->first,
                                .count = static_cast<uint32_t>(list->ranges.size()),
                                .ask_after_ns = 0,
                                .listed_ns = 0,
                                .version = list->version});
}

// Processes that were forked all at once have the same code, and which file is mapped is
// asked for one of them.
std::vector<UnwindFeed::Mapping> UnwindFeed::ReadCode(int64_t pid) {
  std::vector<MapEntry> maps = ScanCode(pid);
  const int64_t now_ns = MonotonicNs();
  if (now_ns - last_.looked_ns < kLeastPauseNs &&
      std::equal(maps.begin(), maps.end(), last_.code.begin(), last_.code.end(),
                 [](const MapEntry& map, const Mapping& last) { return map == last.map; })) {
    return last_.code;
  }
  std::vector<Mapping> code;
  for (MapEntry& map : maps) {
    UnwindModule* module = modules_.Find(pid, map);
    code.push_back({std::move(map), module});
  }
  last_ = {.code = code, .pause_ns = 0, .looked_ns = now_ns};
  return code;
}

std::vector<UnwindFeed::Mapping> UnwindFeed::CodeOf(int64_t pid) {
  std::vector<Mapping> code = ReadCode(pid);
  for (const auto& [map, module] : code) {
    const bool is_new = module != nullptr && module->state == UnwindModule::State::kNew;
    if (is_new && std::find(fresh_.begin(), fresh_.end(), module) == fresh_.end()) {
      fresh_.push_back(module);
    }
  }
  return code;
}

// Who waits for an answer asks again.
bool UnwindFeed::IsAnswered(const UnwindRequest& request) const {
  const auto it = processes_.find(request.tgid);
  return it != processes_.end() && it->second.looked_ns > static_cast<int64_t>(request.time_ns);
}

void UnwindFeed::LookAt(int64_t pid) {
  if (pid == starting_pid_ && IsThisProgram(pid)) return;
  const int64_t now_ns = MonotonicNs();
  std::vector<Mapping> code = CodeOf(pid);
  // It has gone, or is the kernel's.
  if (code.empty()) return;
  Process& process = processes_[pid];
  process.code = std::move(code);
  process.looked_ns = now_ns;
  Send(pid, process);
}

// Parts of a mapping without a table are ranges, too: that the walker meets them is
// no reason to ask.
std::vector<UnwindRange> UnwindFeed::RangesOf(const Process& process) const {
  std::vector<UnwindRange> ranges;
  for (const auto& [map, module] : process.code) {
    uint64_t at = map.start;
    const auto fill_to = [&](uint64_t end) {
      if (at < end)
        ranges.push_back({.start = at, .end = end, .origin = 0, .index = 0, .chunk = kNoChunk});
      at = std::max(at, end);
    };
    uint64_t bias = 0;
    const bool ready = module != nullptr && module->state == UnwindModule::State::kReady;
    if (ready && module->BiasOf(map, bias)) {
      for (const UnwindPiece& piece : module->pieces) {
        const uint64_t start = std::max(map.start, piece.start + bias);
        const uint64_t end = std::min(map.end, piece.end + bias);
        // A piece may begin before the first function, at an address below the bias.
        if (start >= end || end < at) continue;
        fill_to(start);
        ranges.push_back({.start = start,
                          .end = end,
                          .origin = piece.start + bias,
                          .index = piece.index,
                          .chunk = piece.chunk});
        at = end;
      }
    }
    fill_to(map.end);
  }
  return ranges;
}

// A process whose code has not changed was asked about in vain, and less often from
// then on.
void UnwindFeed::Send(int64_t pid, Process& process) {
  const int64_t now_ns = MonotonicNs();
  std::vector<UnwindRange> ranges = RangesOf(process);
  const UnwindList* list = lists_.Find(pid);
  if (list != nullptr && list->ranges == ranges) {
    process.pause_ns = std::clamp(process.pause_ns * 2, kLeastPauseNs, kMostPauseNs);
  } else {
    process.pause_ns = kLeastPauseNs;
    process.listed_ns = now_ns;
    bool is_new = false;
    list = lists_.Set(pid, std::move(ranges), now_ns, is_new);
    if (is_new && !maps_->SetRanges(list->first, list->ranges)) {
      lists_.Forget(pid, now_ns);
      list = nullptr;
    }
    if (list == nullptr) process.pause_ns = kMostPauseNs;
  }
  UnwindProcess told = {.ask_after_ns = static_cast<uint64_t>(now_ns + process.pause_ns)};
  if (list != nullptr) {
    told.first = list->first;
    told.count = static_cast<uint32_t>(list->ranges.size());
    told.version = list->version;
    told.listed_ns = static_cast<uint64_t>(process.listed_ns);
  }
  maps_->SetProcess(pid, told);
}

void UnwindFeed::SendTables() {
  const std::vector<UnwindRule>& rules = image_.rules();
  if (maps_->SetRules(sent_rules_, std::span(rules).subspan(sent_rules_))) {
    sent_rules_ = rules.size();
  }
  sent_words_.resize(image_.chunks().size());
  for (size_t i = 0; i < sent_words_.size(); ++i) {
    if (sent_words_[i] == image_.used_words(i)) continue;
    if (maps_->SetChunk(i, image_.chunks()[i])) sent_words_[i] = image_.used_words(i);
  }
}

// False if there was nothing to do.
bool UnwindFeed::CompileOne() {
  UnwindModule* module = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (fresh_.empty()) return false;
    module = fresh_.front();
  }
  UnwindModules::Compiled compiled = UnwindModules::Compile(*module);
  const std::lock_guard lock(mutex_);
  fresh_.pop_front();
  modules_.Finish(*module, std::move(compiled), image_);
  if (module->state == UnwindModule::State::kReady) unsent_.insert(module);
  if (fresh_.empty() || unsent_.size() >= kModulesAtOnce) SendModules();
  return true;
}

// Tables are sent in chunks that hold many of them.
void UnwindFeed::SendModules() {
  if (unsent_.empty()) return;
  SendTables();
  for (auto& [pid, process] : processes_) {
    const bool has =
        std::any_of(process.code.begin(), process.code.end(),
                    [&](const Mapping& mapping) { return unsent_.contains(mapping.module); });
    if (has) Send(pid, process);
  }
  unsent_.clear();
}

// ---- for its owner ----------------------------------------------------------

WalkedStack UnwindFeed::Walk(int64_t pid, const UnwindRegisters& registers) {
  const std::lock_guard lock(mutex_);
  const std::vector<Mapping> code = CodeOf(pid);
  const RemoteMemory memory(pid, registers.stack_pointer);
  const UnwindSource source = {
      .machine = OwnUnwindMachine().value_or(UnwindMachine::kArm64),
      .rule = [&](uint64_t address) -> UnwindRule {
        for (const auto& [map, module] : code) {
          if (address < map.start || address >= map.end || module == nullptr) continue;
          if (module->state == UnwindModule::State::kNew) CompileNow(*module);
          uint64_t bias = 0;
          if (module->table == nullptr || !module->BiasOf(map, bias)) return {};
          return module->table->At(address - bias);
        }
        return {};
      },
      .read = [&](uint64_t address, void* to,
                  size_t bytes) { return memory.Read(address, to, bytes); }};
  return WalkStack(registers, source);
}

// The thread may be compiling the same module: then its work is for nothing.
void UnwindFeed::CompileNow(UnwindModule& module) {
  modules_.Finish(module, UnwindModules::Compile(module), image_);
}

UnwindStats UnwindFeed::Stats() {
  const std::lock_guard lock(mutex_);
  UnwindStats stats = {.refused = modules_.refused(),
                       .rows = image_.rows(),
                       .rules = image_.rules().size(),
                       .table_bytes = image_.used_bytes(),
                       .processes = lists_.size()};
  for (const auto& module : modules_.all()) {
    stats.modules += module->state == UnwindModule::State::kReady ? 1 : 0;
  }
  stats.kernel_bytes = image_.chunks().size() * kUnwindChunkWords * sizeof(uint32_t) +
                       kUnwindRules * sizeof(UnwindRule) + kUnwindRanges * sizeof(UnwindRange) +
                       kUnwindProcesses * sizeof(UnwindProcess) + kUnwindRequestBytes;
  return stats;
}

}  // namespace culprit::record

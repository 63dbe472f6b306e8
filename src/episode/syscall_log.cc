// SPDX-License-Identifier: Apache-2.0
#include "episode/syscall_log.h"

#include <algorithm>

#include "base/glob.h"
#include "base/parallel.h"

namespace culprit::episode {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;

// Blocks decoded at once: bounds memory, not results.
constexpr size_t kBatch = 32;

bool IsAsked(const trace::Dictionary& dictionary, const trace::Thread& thread,
             const std::string& process, const std::vector<std::string>& globs) {
  if (thread.kind != trace::ThreadKind::kUser) return false;
  if (globs.empty()) return true;
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return MatchesGlob(glob, process) || MatchesGlob(glob, dictionary.Text(thread.name));
  });
}

// "worker-12" and "worker-3" do the same.
std::string RoleOf(std::string_view name) {
  std::string role;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) role += c;
    if (digit && !role.ends_with('#')) role += '#';
  }
  return role;
}

bool IsOfUse(const Event& event) {
  return event.kind == EventKind::kSyscall || event.kind == EventKind::kCall ||
         event.kind == EventKind::kWait || event.kind == EventKind::kReady;
}

std::optional<trace::SyscallAbi> AbiOf(const trace::Metadata& metadata,
                                       const SyscallLogOptions& options) {
  const std::optional<trace::SyscallAbi> abi = trace::SyscallAbiOf(metadata);
  if (abi || !metadata.arch.empty()) return abi;
  return trace::SyscallAbiOf(std::string_view(options.default_arch));
}

class LogReader {
 public:
  LogReader(const trace::TraceReader& reader, const SyscallLogOptions& options,
            SymbolTable& symbols)
      : reader_(reader),
        options_(options),
        symbols_(symbols),
        numbers_(AbiOf(reader.metadata(), options), symbols) {}

  SyscallLog Read() {
    const trace::Metadata& metadata = reader_.metadata();
    log_.begin_ns = metadata.begin_ns;
    log_.end_ns = metadata.end_ns;
    log_.has_switches = metadata.has_switches;
    log_.arch = metadata.arch;
    log_.diagnostics.Merge(reader_.diagnostics());
    PickThreads();
    TakeInstances();
    ReadBlocks();
    log_.named = numbers_.named();
    for (ThreadLog& thread : threads_) {
      if (thread.calls.empty()) continue;
      Order(thread);
      log_.syscalls += thread.calls.size();
      log_.threads.push_back(std::move(thread));
    }
    return std::move(log_);
  }

 private:
  void PickThreads() {
    const trace::Dictionary& dictionary = reader_.dictionary();
    threads_.resize(dictionary.threads().size());
    asked_.resize(threads_.size());
    for (size_t i = 0; i < threads_.size(); ++i) {
      const trace::Thread& thread = dictionary.threads()[i];
      threads_[i].thread = ThreadId(i);
      if (thread.process.valid()) {
        threads_[i].process = dictionary.Text(dictionary.processes()[thread.process.value].name);
      }
      if (threads_[i].process.empty()) threads_[i].process = dictionary.Text(thread.name);
      threads_[i].role = RoleOf(dictionary.Text(thread.name));
      asked_[i] = IsAsked(dictionary, thread, threads_[i].process, options_.processes);
    }
  }

  void TakeInstances() {
    for (const trace::Instance& instance : reader_.instances()) {
      if (!instance.thread.valid() || !asked_[instance.thread.value]) continue;
      threads_[instance.thread.value].instances.push_back(
          {.time_ns = instance.t0_ns, .dur_ns = instance.dur_ns(), .stack = {}});
    }
  }

  void ReadBlocks() {
    std::vector<size_t> wanted;
    for (size_t i = 0; i < reader_.blocks().size(); ++i) {
      const trace::BlockInfo& block = reader_.blocks()[i];
      if (block.HasKind(EventKind::kSyscall) || block.HasKind(EventKind::kCall) ||
          block.HasKind(EventKind::kWait) || block.HasKind(EventKind::kReady)) {
        wanted.push_back(i);
      }
    }
    std::vector<std::vector<Event>> events(kBatch);
    std::vector<uint8_t> damaged(kBatch);
    for (size_t first = 0; first < wanted.size(); first += kBatch) {
      const size_t count = std::min(kBatch, wanted.size() - first);
      ParallelFor(count, options_.jobs, [&](size_t i) {
        damaged[i] = !reader_.ReadBlock(wanted[first + i], events[i]).ok();
        if (damaged[i] != 0) events[i].clear();
        std::erase_if(events[i], [](const Event& event) { return !IsOfUse(event); });
      });
      for (size_t i = 0; i < count; ++i) {
        if (damaged[i] != 0) {
          log_.diagnostics.Count("block that could not be read", 1,
                                 reader_.blocks()[wanted[first + i]].offset);
        }
        for (const Event& event : events[i]) Take(event);
      }
    }
  }

  void Take(const Event& event) {
    if (!event.thread.valid()) return;
    ThreadLog& thread = threads_[event.thread.value];
    if (event.kind == EventKind::kSyscall) {
      if (!asked_[event.thread.value]) {
        ++log_.other_processes;
      } else {
        TakeSyscall(event, thread);
      }
      return;
    }
    if (!asked_[event.thread.value]) return;
    const Span span = {.time_ns = event.time_ns, .dur_ns = event.dur_ns, .stack = event.stack};
    if (event.kind == EventKind::kCall) {
      thread.functions.push_back(span);
      ++log_.function_calls;
    } else {
      thread.off_cpu.push_back(span);
    }
  }

  void TakeSyscall(const Event& event, ThreadLog& thread) {
    Syscall call = {.time_ns = event.time_ns,
                    .dur_ns = event.dur_ns,
                    .stack = event.stack,
                    .symbol = numbers_.Of(event.arg0),
                    .cpu = event.cpu};
    if (event.arg1 < 0 && event.arg1 >= -4095) call.error = static_cast<uint16_t>(-event.arg1);
    if ((event.flags & trace::kUnfinished) != 0) call.flags |= Syscall::kOpen;
    if (NeverReturns(symbols_.Name(call.symbol))) {
      call.dur_ns = 0;
      call.flags = 0;
    }
    if (call.dur_ns > 0) log_.has_durations = true;
    if (call.stack.valid()) ++log_.with_stack;
    thread.calls.push_back(call);
  }

  void Order(ThreadLog& thread) {
    const auto by_time = [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; };
    std::stable_sort(thread.calls.begin(), thread.calls.end(), by_time);
    std::stable_sort(thread.off_cpu.begin(), thread.off_cpu.end(), by_time);
    std::stable_sort(thread.instances.begin(), thread.instances.end(), by_time);
    OrderCalls(thread.functions);
    uint64_t lost = 0;
    for (size_t i = 0; i + 1 < thread.calls.size(); ++i) {
      Syscall& call = thread.calls[i];
      const bool open = (call.flags & Syscall::kOpen) != 0;
      if (!open && call.end_ns() <= thread.calls[i + 1].time_ns) continue;
      call.flags = 0;
      call.dur_ns = 0;
      ++lost;
    }
    if (lost > 0) log_.diagnostics.Count("system call whose exit was lost: no duration", lost);
  }

  const trace::TraceReader& reader_;
  const SyscallLogOptions& options_;
  SymbolTable& symbols_;
  SyscallSymbols numbers_;
  SyscallLog log_;
  std::vector<ThreadLog> threads_;
  std::vector<bool> asked_;
};

}  // namespace

void OrderCalls(std::vector<Span>& functions) {
  std::stable_sort(functions.begin(), functions.end(), [](const Span& a, const Span& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.dur_ns > b.dur_ns;
  });
}

SyscallLog ReadSyscallLog(const trace::TraceReader& reader, const SyscallLogOptions& options,
                          SymbolTable& symbols) {
  return LogReader(reader, options, symbols).Read();
}

}  // namespace culprit::episode

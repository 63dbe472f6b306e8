// SPDX-License-Identifier: Apache-2.0
#include "assemble/thread_table.h"

#include <algorithm>

namespace culprit::assemble {
namespace {

using trace::ThreadKind;

constexpr std::string_view kIdleName = "[idle]";

}  // namespace

LiveThread& ThreadTable::Begin(int64_t tid) {
  if (free_.empty()) free_.push_back(&threads_.emplace_back());
  LiveThread& thread = *free_.back();
  free_.pop_back();
  *live_.Insert(tid).first = &thread;
  thread.tid = tid;
  trace::Thread row = {.tid = tid};
  if (tid == 0) {
    row.kind = ThreadKind::kIdle;
    row.name = dictionary_.Intern(kIdleName);
  }
  thread.id = dictionary_.AddThread(row);
  return thread;
}

trace::ThreadId ThreadTable::Device(std::string_view name) {
  const auto it = devices_.find(name);
  if (it != devices_.end()) return it->second;
  const StringId text = dictionary_.Intern("[" + std::string(name) + "]");
  const trace::ThreadId id = dictionary_.AddThread({.name = text, .kind = ThreadKind::kDevice});
  devices_.emplace(std::string(name), id);
  return id;
}

void ThreadTable::End(LiveThread& thread, int64_t time_ns) {
  trace::Thread& row = dictionary_.thread(thread.id);
  row.end_ns = time_ns;
  const auto process = processes_.find(thread.tid);
  // The leader's end is the process's, for all that threads tell.
  if (process != processes_.end() && row.process == process->second.id) {
    dictionary_.process(process->second.id).end_ns = time_ns;
    processes_.erase(process);
  }
  live_.Erase(thread.tid);
  thread = LiveThread();
  free_.push_back(&thread);
}

std::vector<LiveThread*> ThreadTable::Sorted() {
  std::vector<LiveThread*> threads;
  threads.reserve(live_.size());
  live_.ForEach([&](int64_t, LiveThread* thread) { threads.push_back(thread); });
  std::sort(threads.begin(), threads.end(),
            [](const LiveThread* a, const LiveThread* b) { return a->id < b->id; });
  return threads;
}

ThreadTable::LiveProcess& ThreadTable::ProcessOf(int64_t pid) {
  const auto [it, is_new] = processes_.try_emplace(pid);
  if (is_new) it->second.id = dictionary_.AddProcess({.pid = pid});
  return it->second;
}

void ThreadTable::Name(int64_t pid, int64_t tid, std::string_view name) {
  const LiveThread& thread = Get(tid);
  if (tid == 0) return;
  if (pid >= 0 && pid != dictionary_.thread(thread.id).tid) {
    dictionary_.thread(thread.id).process = ProcessOf(pid).id;
  } else if (pid >= 0) {
    const LiveProcess& process = ProcessOf(pid);
    dictionary_.thread(thread.id).process = process.id;
    if (!process.named && !name.empty()) {
      dictionary_.process(process.id).name = dictionary_.Intern(name);
    }
  }
  if (!name.empty()) dictionary_.thread(thread.id).name = dictionary_.Intern(name);
}

void ThreadTable::ProcessName(int64_t pid, std::string_view name, std::string_view command_line) {
  LiveProcess& process = ProcessOf(pid);
  trace::Process& row = dictionary_.process(process.id);
  if (!name.empty()) {
    row.name = dictionary_.Intern(name);
    process.named = true;
  }
  if (!command_line.empty()) row.command_line = dictionary_.Intern(command_line);
}

void ThreadTable::Cgroup(int64_t pid, std::string_view cgroup) {
  dictionary_.process(ProcessOf(pid).id).cgroup = dictionary_.Intern(cgroup);
}

void ThreadTable::Started(LiveThread& thread, int64_t time_ns, int64_t pid, int64_t parent_tid) {
  const LiveThread* parent = Find(parent_tid);
  const StringId inherited =
      parent != nullptr ? dictionary_.thread(parent->id).name : StringId::none();
  trace::Thread& row = dictionary_.thread(thread.id);
  row.start_ns = time_ns;
  if (!row.name.valid()) row.name = inherited;
  if (pid < 0) return;
  row.process = ProcessOf(pid).id;
  if (pid != thread.tid) return;
  trace::Process& process = dictionary_.process(row.process);
  process.start_ns = time_ns;
  if (!process.name.valid()) process.name = inherited;
}

void ThreadTable::CompleteProcesses() {
  for (size_t i = 0; i < dictionary_.threads().size(); ++i) {
    const trace::Thread row = dictionary_.threads()[i];
    if (row.process.valid()) {
      trace::Process& process = dictionary_.process(row.process);
      if (!process.name.valid()) process.name = row.name;
      continue;
    }
    if (row.tid <= 0) continue;
    if (row.kind == ThreadKind::kIdle || row.kind == ThreadKind::kDevice) continue;
    const trace::ProcessId id = dictionary_.AddProcess(
        {.pid = row.tid, .name = row.name, .start_ns = row.start_ns, .end_ns = row.end_ns});
    dictionary_.thread(trace::ThreadId(i)).process = id;
  }
}

}  // namespace culprit::assemble

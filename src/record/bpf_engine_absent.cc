// SPDX-License-Identifier: Apache-2.0
// In place of bpf_engine.cc where clang, bpftool or libbpf were missing when the
// program was built: there is never an engine.
#ifndef CULPRIT_HAS_BPF_ENGINE
#include "record/bpf_engine.h"

namespace culprit::record {

struct BpfEngine::State {};

BpfEngine::~BpfEngine() = default;
bool BpfEngine::Built() { return false; }

Result<std::unique_ptr<BpfEngine>> BpfEngine::Start(const EngineOptions&) {
  return Error{.message = "this culprit was built without its BPF engine",
               .hint = "install clang, bpftool and libbpf-dev, and build it again"};
}

Status BpfEngine::AddTarget(int64_t) { return {}; }
Status BpfEngine::PrepareThreads() { return {}; }
void BpfEngine::Begin(int64_t) {}
void BpfEngine::End(int64_t) {}
Status BpfEngine::Pause() { return {}; }
Status BpfEngine::TellPause() { return {}; }
Status BpfEngine::Resume(const std::function<int64_t()>&) { return {}; }
Status BpfEngine::SetPolicy(const Policy&) { return {}; }
void BpfEngine::RenameStacks() {}
Policy BpfEngine::policy() const { return {}; }
Status BpfEngine::SetSamplePeriod(int64_t) { return {}; }
void BpfEngine::Drain(const std::function<void(std::string_view)>&) {}
Status BpfEngine::TellOpen() { return {}; }
std::vector<CountedCalls> BpfEngine::ReadCallCounts() const { return {}; }
UnwindMapFds BpfEngine::unwind_maps() const { return {}; }
UnwindCounters BpfEngine::ReadUnwindCounters() const { return {}; }
EngineCounters BpfEngine::ReadCounters() const { return {}; }
uint64_t BpfEngine::KernelTimeNs() const { return 0; }
double BpfEngine::ring_fill() const { return 0; }
bool BpfEngine::has_marks() const { return false; }
const ProgramChoice& BpfEngine::programs() const {
  static const ProgramChoice none;
  return none;
}

}  // namespace culprit::record
#endif  // CULPRIT_HAS_BPF_ENGINE

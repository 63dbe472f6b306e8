// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/sample_batch.h"

#include <algorithm>

#include "guard/runtime/process.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kPauseNs = 50'000'000;

}  // namespace

void AddSample(ThreadState& state, const wire::Sample& sample) {
  state.samples[state.sample_count++] = sample;
  if (state.sample_count == kSamplesACell) FlushSamples(state);
}

void FlushSamplesBeforeWait(ThreadState& state, uint64_t now) {
  if (state.sample_count == 0 || now - state.samples_flushed_ticks < TicksOfNs(kPauseNs)) return;
  state.samples_flushed_ticks = now;
  FlushSamples(state);
}

void FlushSamples(ThreadState& state) {
  const uint32_t count = state.sample_count;
  state.sample_count = 0;
  Process& process = ThisProcess();
  if (count == 0 || process.stage.load(std::memory_order_acquire) != Process::kMade) return;
  const bool written = WriteToRing([&](wire::Cell& cell) {
    cell.kind = static_cast<uint32_t>(wire::RecordKind::kSamples);
    cell.count = count;
    std::copy(state.samples, state.samples + count, cell.samples);
  });
  if (!written) process.header->lost_records.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace culprit::guard::runtime

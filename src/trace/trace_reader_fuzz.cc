// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file. Nothing may crash, loop or eat memory, and what
// the reader hands out must be consistent.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "trace/file_layout.h"
#include "trace/owner_state.h"
#include "trace/trace_reader.h"

namespace {

using culprit::trace::DecodeSectionHead;
using culprit::trace::EncodeSectionHead;
using culprit::trace::kFileHeadBytes;
using culprit::trace::kSectionHeadBytes;

// Checksums would stop the fuzzer at the door. Sections whose head is whole but
// whose hashes are wrong get right ones, so that their contents are reached.
std::string WithRightChecksums(std::string bytes) {
  size_t offset = kFileHeadBytes;
  while (offset + kSectionHeadBytes <= bytes.size()) {
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) {
      length = (length << 8) | static_cast<uint8_t>(bytes[offset + 4 + static_cast<size_t>(i)]);
    }
    if (length > bytes.size() - offset - kSectionHeadBytes) break;
    const std::string tag = bytes.substr(offset, 4);
    const std::string payload = bytes.substr(offset + kSectionHeadBytes, length);
    bytes.replace(offset, kSectionHeadBytes, EncodeSectionHead(tag, payload));
    offset += kSectionHeadBytes + length;
  }
  return bytes;
}

void ReadEverything(std::string bytes) {
  auto reader = culprit::trace::TraceReader::FromBytes(std::move(bytes), "fuzz");
  if (!reader.ok()) return;
  const auto& dictionary = reader.value().dictionary();
  std::vector<culprit::trace::Event> events;
  for (size_t i = 0; i < reader.value().blocks().size(); ++i) {
    if (!reader.value().ReadBlock(i, events).ok()) continue;
    for (const auto& event : events) {
      CULPRIT_CHECK(event.dur_ns >= 0 && event.end_ns() >= event.time_ns);
      CULPRIT_CHECK(!event.thread.valid() || event.thread.value < dictionary.threads().size());
      CULPRIT_CHECK(!event.peer.valid() || event.peer.value < dictionary.threads().size());
      CULPRIT_CHECK(!event.stack.valid() || event.stack.value < dictionary.stacks().size());
    }
  }
  for (const auto& instance : reader.value().instances()) {
    CULPRIT_CHECK(instance.t0_ns <= instance.t1_ns);
    CULPRIT_CHECK(!instance.thread.valid() || instance.thread.value < dictionary.threads().size());
    (void)dictionary.Text(instance.scenario);
  }
  for (size_t i = 0; i < dictionary.threads().size() && i < 100; ++i) {
    (void)dictionary.ThreadLabel(culprit::trace::ThreadId(i));
  }
  for (size_t i = 0; i < dictionary.stacks().size() && i < 100; ++i) {
    (void)dictionary.StackText(culprit::trace::StackId(i));
  }
  const auto trace = std::move(reader).value().ReadAll(culprit::trace::EventOrder::kByThread);
  CULPRIT_CHECK(std::ranges::is_sorted(trace.events, {}, [](const auto& event) {
    return culprit::trace::OwnerOf(event).value + 1;
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadEverything(WithRightChecksums(bytes));
  ReadEverything(std::move(bytes));
  return 0;
}

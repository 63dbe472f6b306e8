// SPDX-License-Identifier: Apache-2.0
//
// The frame of an ETW log file: its header, which says how everything else is
// to be read, and the list of its buffers. A buffer belongs to one CPU; buffers
// stand in the order they were flushed, which is not the order of time.
//
// ListEtlBuffers reads only the buffers' headers: 24 bytes of memory a buffer,
// kMaxEtlBuffers at most. A file cut anywhere gives the buffers before the cut
// and the readable part of the last. LoadEtlBuffer reads and unpacks one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/etl_layout.h"
#include "import/source.h"

namespace culprit::import_ {

inline constexpr size_t kMaxEtlBuffers = size_t{1} << 24;
inline constexpr uint32_t kMaxEtlBufferBytes = 64u << 20;

struct EtlHeader {
  uint32_t buffer_bytes = 0;
  uint8_t os_major = 0;
  uint8_t os_minor = 0;
  uint32_t os_build = 0;
  uint32_t cpus = 0;
  uint32_t mode = 0;
  uint32_t pointer_bytes = 8;
  uint32_t events_lost = 0;
  uint32_t buffers_lost = 0;
  uint32_t cpu_mhz = 0;
  uint64_t frequency = 0;   // of the performance counter, per second
  uint64_t start_time = 0;  // 100 ns since 1601
  uint64_t start_ticks = 0;
  EtlClockType clock = EtlClockType::kPerformanceCounter;
  EtlCompression compression = EtlCompression::kNone;
  std::string logger;

  // Time since the start; saturates far beyond any recording.
  int64_t ToNs(uint64_t ticks) const;
  // Of as many ticks.
  int64_t DurationNs(uint64_t ticks) const;
};

// Does the input begin like an ETW log file?
bool IsEtl(std::string_view head);
Result<EtlHeader> ReadEtlHeader(const Source& source);

struct EtlBuffer {
  uint64_t offset = 0;
  uint32_t file_bytes = 0;  // with its header
  uint32_t used_bytes = 0;  // unpacked, with its header
  uint16_t cpu = 0;
  bool packed = false;
};

Result<std::vector<EtlBuffer>> ListEtlBuffers(const Bytes& bytes, const EtlHeader& header,
                                              Diagnostics& diagnostics);
// The records of a buffer, without its header. Damage is counted; what came
// before it is there.
Status LoadEtlBuffer(const Bytes& bytes, const EtlHeader& header, const EtlBuffer& buffer,
                     std::string& records, Diagnostics& diagnostics);

}  // namespace culprit::import_

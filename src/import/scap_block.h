// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a .scap file (sysdig, falco), which are laid out like those of
// pcap-ng, and the events in them:
//
//   file  = section header, { type u32, length u32, body, length u32 }
//   event = cpu u16, [flags u32], time u64, tid u64, length u32, type u16,
//           [parameters u32], { length u16 or u32 } per parameter, values
//
// The section header's magic tells the byte order of all that follows; files
// may hold several sections. Events have flags, a count of parameters and
// lengths of 32 bits only in blocks whose type says so. Lengths inside a block
// are never trusted; a block whose own length is impossible ends the reading,
// for nothing tells where the next begins. Memory is one block, at most
// kMaxScapBlock. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/source.h"

namespace culprit::import_ {

enum ScapBlockType : uint32_t {
  kScapSection = 0x0a0d0d0a,
  kScapMachine = 0x201,
  kScapEvent = 0x204,
  kScapEventFlags = 0x208,
  kScapEventV2 = 0x216,
  kScapEventFlagsV2 = 0x217,
  kScapEventLarge = 0x221,
  kScapEventFlagsLarge = 0x222,
};
inline constexpr uint32_t kScapMagic = 0x1a2b3c4d;
inline constexpr size_t kMaxScapBlock = size_t{256} << 20;

// Which version of the process list a block is, 1 to 9; 0: it is none.
int ScapProcessListVersion(uint32_t block_type);
bool IsScapEvent(uint32_t block_type);

struct ScapBlock {
  uint32_t type = 0;
  std::string_view body;
  uint64_t offset = 0;
  bool big = false;  // byte order
};

class ScapBlockReader {
 public:
  explicit ScapBlockReader(const Bytes& bytes) : reader_(bytes) {}

  // The next block, or nothing at the end; valid until the next call.
  Result<std::optional<ScapBlock>> Next(Diagnostics& diagnostics);
  uint64_t offset() const { return reader_.offset(); }

 private:
  BytesReader reader_;
  uint64_t skip_ = 0;
  bool big_ = false;
};

struct ScapEvent {
  int64_t time_ns = 0;
  int64_t tid = -1;
  uint16_t type = 0;
  uint16_t cpu = 0;
  bool big = false;
  std::vector<std::string_view> values;  // of the parameters

  bool is_exit() const { return (type & 1) != 0; }
  // A parameter as a number of its own length; 0: there is none such.
  int64_t Signed(size_t parameter) const;
  // Up to its NUL.
  std::string_view Text(size_t parameter) const;
  std::string_view Value(size_t parameter) const {
    return parameter < values.size() ? values[parameter] : std::string_view();
  }
};

// False: the event does not fit its block. Reuses the memory of `event`.
bool ReadScapEvent(const ScapBlock& block, ScapEvent& event);

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
//
// UnwindCursor: the numbers of DWARF call frame information, read in order from
// untrusted bytes. The first read past the end sets failed(), and every later one
// gives zero.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace culprit::record {

class UnwindCursor {
 public:
  // `address` is where the first byte stands in the module.
  UnwindCursor(std::string_view bytes, uint64_t address)
      : bytes_(bytes), in_(bytes), address_(address) {}

  uint8_t U8() { return in_.U8(); }
  uint16_t U16() { return in_.U16(); }
  uint32_t U32() { return in_.U32(); }
  uint64_t U64() { return in_.U64(); }
  uint64_t Unsigned();  // LEB128
  int64_t Signed();     // LEB128
  std::string_view CString();
  std::string_view Bytes(uint64_t count);
  // A pointer by its DW_EH_PE encoding, and the same without what it is relative to.
  uint64_t Pointer(uint8_t encoding);
  uint64_t Value(uint8_t encoding);
  void Fail() { failed_ = true; }

  bool failed() const { return failed_ || in_.failed(); }
  bool at_end() const { return failed() || in_.remaining() == 0; }
  uint64_t address() const { return address_ + in_.position(); }

 private:
  std::string_view bytes_;
  ByteReader in_;
  uint64_t address_;
  bool failed_ = false;
};

}  // namespace culprit::record

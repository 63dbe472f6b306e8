// SPDX-License-Identifier: Apache-2.0
//
// ChangedBytes: real bytes with changes that a fuzzer chose, for the fuzz targets of
// encodings, whose checksum or structure random bytes alone would never get past.
// Choices are triples of two bytes that say where and one that says what.
#pragma once

#include <cstdint>
#include <string>

namespace culprit::corpus {

inline std::string ChangedBytes(std::string real, const uint8_t* choices, size_t size) {
  for (size_t i = 0; i + 2 < size && !real.empty(); i += 3) {
    real[(choices[i] | choices[i + 1] << 8) % real.size()] = static_cast<char>(choices[i + 2]);
  }
  return real;
}

// One input of a fuzz target for the evidence of an analysis: as it is, and as changes
// of real evidence. `decode(bytes)` gives an optional; what is accepted must be sound:
// it encodes to what decodes again, and it adds up.
template <class Decode, class Encode, class AddUp>
void FuzzEvidence(const std::string& real, const uint8_t* data, size_t size, const Decode& decode,
                  const Encode& encode, const AddUp& add_up) {
  for (const std::string& bytes :
       {std::string(reinterpret_cast<const char*>(data), size), ChangedBytes(real, data, size)}) {
    const auto evidence = decode(bytes);
    if (!evidence) continue;
    const std::string again = encode(*evidence);
    const auto decoded = decode(again);
    if (!decoded || encode(*decoded) != again) __builtin_trap();
    add_up(*evidence);
  }
}

}  // namespace culprit::corpus

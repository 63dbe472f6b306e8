// SPDX-License-Identifier: Apache-2.0
//
// Signature: a named behaviour, kept across corpora and releases (StackMine
// §VII, SPEC §6). It holds the patterns of the cluster it was made from, or one
// written by hand, as names of frames. SignaturesToJson and SignaturesFromJson
// are the store's file format (docs/signatures.md); what is not a signature in a
// file is an Error, never dropped in silence.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stackmine/patterns.h"

namespace culprit::stackmine {

enum class SignatureStatus : uint8_t {
  kNew,      // recorded, nobody has decided yet
  kKnown,    // understood; expected to be seen
  kFixed,    // must not come back
  kIgnored,  // by design, or nothing to be done
};
inline constexpr std::array<std::string_view, 4> kSignatureStatusNames = {"new", "known", "fixed",
                                                                          "ignored"};
constexpr std::string_view Name(SignatureStatus status) {
  return kSignatureStatusNames[static_cast<size_t>(status)];
}
std::optional<SignatureStatus> ParseSignatureStatus(std::string_view text);

using FrameNames = std::vector<std::string>;  // caller first, "module!function"

// When an application was seen with a behaviour: the days of its first and last
// trace, as "2026-03-01".
struct Sighting {
  std::string app;
  std::string version;
  std::string first;
  std::string last;

  bool operator==(const Sighting&) const = default;
};

struct Signature {
  std::string name;
  StackKind kind = StackKind::kWait;
  SignatureStatus status = SignatureStatus::kNew;
  std::string owner;
  std::string note;
  std::vector<FrameNames> patterns;  // an event matches if its stack contains any
  FrameNames common;                 // what they share, for people
  std::string cluster;               // id of the cluster it was made from
  std::string source;                // where that was seen
  std::string added;                 // "2026-03-01"
  std::vector<Sighting> seen;        // by application and version

  bool operator==(const Signature&) const = default;
};

std::string SignaturesToJson(const std::vector<Signature>& signatures);
// `file` stands in messages.
Result<std::vector<Signature>> SignaturesFromJson(const std::string& text, const std::string& file);

// Notes that it was seen in a version on a day.
void NoteSighting(Signature& signature, const std::string& app, const std::string& version,
                  const std::string& day);

// A name that no signature has: `wanted`, or with a suffix -2, -3, ...
std::string FreeName(const std::vector<Signature>& signatures, const std::string& wanted);

// "a!b;c!d" to its frames; empty frames are left out.
FrameNames ParseFrames(std::string_view text);

}  // namespace culprit::stackmine

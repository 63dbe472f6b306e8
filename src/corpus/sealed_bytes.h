// SPDX-License-Identifier: Apache-2.0
//
// Sealed bytes: a payload with what it is, compressed, under one checksum: the
// outside of every file that culprit makes for itself and may make again
// (summaries of traces, outputs of shards).
//
//   sealed := "CSEALED\n" version:u16 kind:string id:string raw_size:varint
//             zstd_frame hash:u64
//   string := length:varint bytes
//
// The hash covers everything before it. A reader names the kind and the id it
// expects; bytes that are cut, changed, of another kind, id or version are none.
// The same payload gives the same bytes with the same zstd. Pure functions; the
// payload and its compressed form are in memory together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::corpus {

// More than this is refused by both sides.
inline constexpr uint64_t kMaxSealedBytes = uint64_t{64} << 30;

std::string Seal(std::string_view kind, std::string_view id, std::string_view payload);
std::optional<std::string> Unseal(std::string_view kind, std::string_view id,
                                  std::string_view sealed);
// Whether Unseal would find this kind and id whole, without unpacking.
bool IsSealed(std::string_view kind, std::string_view id, std::string_view sealed);

// 32 hexadecimal digits that stand for these bytes: an XXH3 of 128 bits, the same
// on every machine. Not for adversaries.
std::string ShortDigest(std::string_view bytes);

}  // namespace culprit::corpus

// SPDX-License-Identifier: Apache-2.0
//
// The outer layout of a native trace file, shared by writer and reader. The
// whole grammar with reasons is in docs/format.md.
//
//   file    := "CTRACE\x1a\n" major:u16 minor:u16 zero:u32 section* trailer
//   section := tag[4] length:u64 head_hash:u32 hash:u64 payload[length]
//   trailer := index_offset:u64 "CTRACEND"
//
// head_hash covers tag and length, hash the payload; so a reader that has lost
// its way recognizes the next section by its head alone, and a damaged payload
// does not make it lose its way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::trace {

inline constexpr std::string_view kFileMagic{"CTRACE\x1a\n", 8};
inline constexpr std::string_view kTrailerMagic{"CTRACEND", 8};
inline constexpr uint16_t kMajorVersion = 2;
inline constexpr uint16_t kMinorVersion = 0;
inline constexpr size_t kFileHeadBytes = 16;
inline constexpr size_t kSectionHeadBytes = 24;
inline constexpr size_t kTrailerBytes = 16;

inline constexpr std::string_view kMetadataTag = "META";
inline constexpr std::string_view kDictionaryTag = "DICT";
inline constexpr std::string_view kInstancesTag = "INST";
inline constexpr std::string_view kEventsTag = "EVTS";
inline constexpr std::string_view kIndexTag = "INDX";

// One compressed payload (dictionary piece, instances, index) unpacks to at
// most this; the writer splits what is larger.
inline constexpr size_t kMaxUnpackedBytes = 64 << 20;

struct SectionHead {
  std::string tag;
  uint64_t length = 0;  // of the payload
  uint64_t hash = 0;    // of the payload
};

std::string EncodeFileHead();
std::string EncodeSectionHead(std::string_view tag, std::string_view payload);
// Nothing: these bytes are not the head of a section.
std::optional<SectionHead> DecodeSectionHead(std::string_view bytes);
uint64_t PayloadHash(std::string_view payload);

}  // namespace culprit::trace

// SPDX-License-Identifier: Apache-2.0
//
// TraceDatFile: what a trace.dat of trace-cmd says before its trace data.
//
//   file    := 17 08 44 "tracing" version\0 endian:u8 long:u8 page:u32 body
//   body v6 := header_page header_event ftrace_formats formats kallsyms printk
//              cmdlines cpus:u32 ["options  \0" option* 0:u16]
//              "flyrecord\0" (offset:u64 size:u64)*
//   body v7 := codec\0 codec_version\0 offset:u64 of the first options section
//   section := id:u16 flags:u16 name:u32 size:u64 data     (flag 1: compressed)
//   option  := id:u16 size:u32 data
//
// v7 keeps the same parts in sections that options point to; a compressed one
// is size:u32 unpacked:u32 data; the pages of a CPU are count:u32 of those.
// Nothing in the file is trusted; parts that cannot be read are counted and
// left out. Memory: the formats and kallsyms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/block_codec.h"
#include "import/event_format.h"
#include "import/ring_buffer_stream.h"
#include "import/source.h"

namespace culprit::import_ {

struct CpuPages {
  uint16_t cpu = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool compressed = false;
};

struct TraceDatFile {
  int version = 0;
  size_t long_bytes = 8;
  PageLayout layout;
  std::optional<BlockCodec> codec;
  std::vector<EventFormat> formats;
  std::string kallsyms;
  std::string cmdlines;
  std::vector<std::string> cpu_stats;
  std::string uname;
  std::string recorder;  // the version of trace-cmd
  std::string clock;
  RingClock ring_clock;
  int64_t wall_offset_ns = 0;  // to be added for Unix time; 0: unknown
  uint32_t cpus = 0;
  std::vector<CpuPages> pages;
};

inline constexpr std::string_view kTraceDatMagic("\x17\x08\x44tracing", 10);

Result<TraceDatFile> ReadTraceDatFile(const Bytes& bytes, const std::string& name,
                                      Diagnostics& diagnostics);

// The pages of one CPU, unpacked where they are compressed.
std::unique_ptr<PageFeed> PagesOf(const Bytes& bytes, const TraceDatFile& file,
                                  const CpuPages& pages, Diagnostics& diagnostics);

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_session.h"

#include <algorithm>

#include "base/text.h"
#include "import/perf_data_tracing.h"

namespace culprit::import_ {
namespace {

constexpr std::string_view kMagicLittle = "PERFILE2";
constexpr std::string_view kMagicBig = "2ELIFREP";
constexpr uint64_t kPipeHeaderBytes = 16;
constexpr uint64_t kFileHeaderBytes = 104;
constexpr size_t kMaxAttrs = 1 << 14;
constexpr size_t kMaxIds = 1 << 20;
constexpr uint64_t kMaxFeatureBytes = uint64_t{64} << 20;
constexpr size_t kBuildIdBytes = 20;

struct Section {
  uint64_t offset = 0;
  uint64_t size = 0;
};

Section ReadSection(FieldReader& in) {
  Section section;
  section.offset = in.U64();
  section.size = in.U64();
  return section;
}

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return text;
}

// Body of a build-id record: pid, id, path.
void AddBuildId(uint16_t misc, std::string_view body, PerfSession& session) {
  FieldReader in(body, session.big);
  in.Skip(4);
  std::string_view id = in.Bytes(kBuildIdBytes);
  const size_t size = in.U8();
  in.Skip(3);
  if ((misc & kMiscBuildIdSize) != 0 && size <= kBuildIdBytes) id = id.substr(0, size);
  const std::string_view path = in.CString();
  if (in.failed() || path.empty()) return;
  session.build_ids.emplace(path, Hex(id));
}

void AddBuildIds(std::string_view bytes, PerfSession& session) {
  while (bytes.size() >= kRecordHeadBytes) {
    const uint16_t misc = LoadInteger<uint16_t>(bytes.data() + 4, session.big);
    const size_t size = LoadInteger<uint16_t>(bytes.data() + 6, session.big);
    if (size < kRecordHeadBytes || size > bytes.size()) return;
    AddBuildId(misc, bytes.substr(kRecordHeadBytes, size - kRecordHeadBytes), session);
    bytes.remove_prefix(size);
  }
}

void AddEventNames(FieldReader in, PerfSession& session) {
  const uint32_t count = in.U32();
  const uint32_t attr_size = in.U32();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    in.Skip(attr_size);
    const uint32_t ids = in.U32();
    const std::string_view name = in.PerfString();
    in.Skip(uint64_t{ids} * 8);
    // They stand in the order of the attrs.
    if (in.failed() || i >= session.attrs.all().size()) return;
    session.attrs.all()[i].name = name;
  }
}

std::string CommandLine(FieldReader in) {
  const uint32_t count = in.U32();
  std::string line;
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    if (i > 0) line += ' ';
    line += in.PerfString();
  }
  return line;
}

// Lines "sched:sched_switch,2,91": name, type, config.
void AddSimpleperfNames(std::string_view lines, PerfSession& session) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const size_t config = line.rfind(',');
    if (config == 0 || config == std::string_view::npos) continue;
    const size_t type = line.rfind(',', config - 1);
    if (type == std::string_view::npos) continue;
    const auto type_number = ParseUnsigned(line.substr(type + 1, config - type - 1));
    const auto config_number = ParseUnsigned(line.substr(config + 1));
    for (PerfAttr& attr : session.attrs.all()) {
      if (attr.type == type_number && attr.config == config_number)
        attr.name = line.substr(0, type);
    }
  }
}

void AddMetaInfo(std::string_view bytes, PerfSession& session) {
  FieldReader in(bytes, session.big);
  while (in.remaining() > 0) {
    const std::string key(in.CString());
    session.simpleperf[key] = in.CString();
  }
  const auto names = session.simpleperf.find("event_type_info");
  if (names != session.simpleperf.end()) AddSimpleperfNames(names->second, session);
}

void AddFeature(uint32_t feature, std::string_view bytes, uint64_t offset, PerfSession& session,
                Diagnostics& diagnostics) {
  FieldReader in(bytes, session.big);
  switch (feature) {
    case kFeatureTracingData: {
      PerfTracingData data = ParsePerfTracingData(bytes, session.big, offset, diagnostics);
      session.formats = std::move(data.formats);
      session.kallsyms = std::move(data.kallsyms);
      break;
    }
    case kFeatureBuildId:
      AddBuildIds(bytes, session);
      break;
    case kFeatureHostname:
      session.hostname = in.PerfString();
      break;
    case kFeatureOsRelease:
      session.os_release = in.PerfString();
      break;
    case kFeatureVersion:
      session.perf_version = in.PerfString();
      break;
    case kFeatureArch:
      session.arch = in.PerfString();
      break;
    case kFeatureCpus:
      in.Skip(4);
      session.cpus = in.U32();
      break;
    case kFeatureCommandLine:
      session.command_line = CommandLine(in);
      break;
    case kFeatureEventNames:
      AddEventNames(in, session);
      break;
    case kFeatureClockData:
      in.Skip(8);
      session.wall_clock_ns = in.U64();
      session.clock_ns = in.U64();
      break;
    case kFeatureSimpleperfFile:
      session.file_symbols.AddFile(bytes, offset, diagnostics);
      break;
    case kFeatureSimpleperfFile2:
      session.file_symbols.AddFile2(bytes, offset, diagnostics);
      break;
    case kFeatureSimpleperfMetaInfo:
      AddMetaInfo(bytes, session);
      break;
    default:
      break;
  }
}

Status ReadAttrs(const Bytes& bytes, Section section, uint64_t attr_size, PerfSession& session,
                 Diagnostics& diagnostics) {
  if (attr_size < 64 + 16 || attr_size > 4096) {
    diagnostics.Count("event descriptions of impossible size", 1, 16);
    return {};
  }
  const uint64_t count = std::min<uint64_t>(section.size / attr_size, kMaxAttrs);
  std::string table;
  CULPRIT_TRY(bytes.ReadAt(section.offset, static_cast<size_t>(count * attr_size), table));
  std::string ids;
  size_t ids_left = kMaxIds;
  for (uint64_t i = 0; (i + 1) * attr_size <= table.size(); ++i) {
    const std::string_view entry = std::string_view(table).substr(i * attr_size, attr_size);
    FieldReader place(entry.substr(attr_size - 16), session.big);
    const Section id_section = ReadSection(place);
    const size_t want = static_cast<size_t>(std::min<uint64_t>(id_section.size / 8, ids_left));
    ids.clear();
    if (want > 0) CULPRIT_TRY(bytes.ReadAt(id_section.offset, want * 8, ids));
    ids_left -= ids.size() / 8;
    std::vector<uint64_t> numbers;
    FieldReader in(ids, session.big);
    while (in.remaining() >= 8) numbers.push_back(in.U64());
    session.attrs.Add(ParsePerfAttr(entry.substr(0, attr_size - 16), session.big), numbers);
  }
  return {};
}

Status ReadFeatures(const Bytes& bytes, const std::vector<uint64_t>& bits, PerfSession& session,
                    Diagnostics& diagnostics) {
  std::string table;
  CULPRIT_TRY(bytes.ReadAt(session.data_end, 256 * 16, table));
  FieldReader in(table, session.big);
  std::string contents;
  for (uint32_t feature = 0; feature < 256; ++feature) {
    if ((bits[feature / 64] >> (feature % 64) & 1) == 0) continue;
    const Section section = ReadSection(in);
    if (in.failed() || section.offset > bytes.size()) {
      diagnostics.Count("feature section that is not in the file", 1, session.data_end);
      continue;
    }
    const uint64_t left = bytes.size() - section.offset;
    const uint64_t size = std::min({section.size, left, kMaxFeatureBytes});
    CULPRIT_TRY(bytes.ReadAt(section.offset, static_cast<size_t>(size), contents));
    AddFeature(feature, contents, section.offset, session, diagnostics);
  }
  return {};
}

// The 256 bits are an array of the recorder's longs; on a big-endian machine
// with longs of four bytes a u64 read swaps its halves.
std::vector<uint64_t> FeatureBits(FieldReader& in) {
  std::vector<uint64_t> bits(4);
  for (uint64_t& word : bits) word = in.U64();
  constexpr uint64_t kHostname = uint64_t{1} << kFeatureHostname;
  // Every perf.data names its host, unless it has no features at all.
  if (in.big() && (bits[0] & kHostname) == 0 && (bits[0] >> 32 & kHostname) != 0) {
    for (uint64_t& word : bits) word = word << 32 | word >> 32;
  }
  return bits;
}

}  // namespace

bool IsPerfData(std::string_view head) {
  return head.starts_with(kMagicLittle) || head.starts_with(kMagicBig);
}

Result<PerfSession> ReadPerfHeader(const Source& source, Diagnostics& diagnostics) {
  const Bytes& bytes = source.bytes();
  std::string head;
  CULPRIT_TRY(bytes.ReadAt(0, kFileHeaderBytes, head));
  if (!IsPerfData(head) || head.size() < kPipeHeaderBytes) {
    return Error{.message = "not a perf.data file, or cut within its first bytes",
                 .file = source.name(),
                 .offset = 0};
  }
  PerfSession session;
  session.big = head.starts_with(kMagicBig);
  FieldReader in(head, session.big);
  in.Skip(8);
  const uint64_t header_size = in.U64();
  if (header_size == kPipeHeaderBytes) {
    session.pipe = true;
    session.data_begin = kPipeHeaderBytes;
    session.data_end = bytes.size();
    return session;
  }
  const uint64_t attr_size = in.U64();
  const Section attrs = ReadSection(in);
  const Section data = ReadSection(in);
  ReadSection(in);
  const std::vector<uint64_t> features = FeatureBits(in);
  if (in.failed()) {
    return Error{.message = "a perf.data file cut within its header",
                 .file = source.name(),
                 .offset = head.size()};
  }
  session.data_begin = std::min(data.offset, bytes.size());
  const uint64_t left = bytes.size() - session.data_begin;
  session.data_end = session.data_begin + std::min(data.size, left);
  CULPRIT_TRY(ReadAttrs(bytes, attrs, attr_size, session, diagnostics));
  if (data.size == 0) {
    diagnostics.Count("recording whose writer died: no data size, no features", 1, 40);
    session.data_end = bytes.size();
  } else if (data.size > left) {
    diagnostics.Count("file cut short within its data", 1, bytes.size());
  } else {
    CULPRIT_TRY(ReadFeatures(bytes, features, session, diagnostics));
  }
  return session;
}

void AddPerfRecord(const PerfRecordView& record, PerfSession& session, Diagnostics& diagnostics) {
  FieldReader in(record.body, session.big);
  switch (record.type) {
    case kRecordHeaderAttr: {
      if (session.attrs.all().size() >= kMaxAttrs || record.body.size() < 64) break;
      const size_t size = LoadInteger<uint32_t>(record.body.data() + 4, session.big);
      const std::string_view attr = in.Bytes(std::clamp<size_t>(size, 64, record.body.size()));
      std::vector<uint64_t> ids;
      while (in.remaining() >= 8) ids.push_back(in.U64());
      session.attrs.Add(ParsePerfAttr(attr, session.big), ids);
      break;
    }
    case kRecordTracingData:
      AddFeature(kFeatureTracingData, record.body, record.offset, session, diagnostics);
      break;
    case kRecordBuildId:
      AddBuildId(record.misc, record.body, session);
      break;
    case kRecordHeaderFeature: {
      const uint64_t feature = in.U64();
      if (in.failed() || feature > 256) break;
      AddFeature(static_cast<uint32_t>(feature), in.Bytes(in.remaining()), record.offset, session,
                 diagnostics);
      break;
    }
    default:
      break;
  }
}

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
#include "import/trace_dat_file.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "import/importer.h"
#include "import/stored_bytes.h"
#include "import/trace_dat_reader.h"

namespace culprit::import_ {
namespace {

enum Option : uint16_t {
  kDone = 0,
  kDate = 1,
  kCpuStat = 2,
  kBuffer = 3,
  kTraceClock = 4,
  kUname = 5,
  kOffset = 7,
  kCpuCount = 8,
  kVersion = 9,
  kTscToNanoseconds = 14,
  kHeaderInfo = 16,
  kFtraceEvents = 17,
  kEventFormats = 18,
  kKallsyms = 19,
  kCmdlines = 21,
};

constexpr uint16_t kCompressedFlag = 1;
constexpr uint64_t kMaxPart = uint64_t{256} << 20;
constexpr uint64_t kMaxFormat = uint64_t{1} << 20;
constexpr size_t kMaxPageBytes = size_t{1} << 20;
constexpr size_t kMaxSections = 1024;
constexpr int64_t kYear2000Ns = 946'684'800'000'000'000;
constexpr int64_t kMaxOffsetNs = int64_t{1} << 61;

// A stated size must be plausible for the bytes it is made from.
size_t UnpackLimit(uint64_t packed, uint64_t stated) {
  const uint64_t plausible = std::max<uint64_t>(1 << 20, packed * 1024);
  return static_cast<size_t>(std::min({stated, plausible, kMaxPart}));
}

// "1234", "-1234" or "0x4d2".
int64_t Integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  return std::clamp(negative ? -value : value, -kMaxOffsetNs, kMaxOffsetNs);
}

std::string UpToNul(const std::string& text) { return text.substr(0, text.find('\0')); }

class FileParser {
 public:
  FileParser(const Bytes& bytes, TraceDatFile& file, Diagnostics& diagnostics)
      : bytes_(bytes), file_(file), diagnostics_(diagnostics) {}

  // From after the page size, where the two versions part.
  void ReadVersion6(uint64_t offset);
  Status ReadVersion7(uint64_t offset, const std::string& name);

 private:
  void HeaderInfo(TraceDatReader& reader);
  void FormatText(TraceDatReader& reader, std::string_view system);
  void FtraceFormats(TraceDatReader& reader);
  void EventFormats(TraceDatReader& reader);
  void OptionOf(uint16_t id, const std::string& data);
  void PointedSection(uint16_t id, uint64_t offset);
  void BufferOption(TraceDatReader reader);
  void CpuRanges(TraceDatReader& reader, uint32_t cpus);
  void AddPages(uint64_t cpu, uint64_t offset, uint64_t size, bool compressed);
  // Reads options up to the last; gives what that one points to.
  uint64_t Options(TraceDatReader& reader);

  const Bytes& bytes_;
  TraceDatFile& file_;
  Diagnostics& diagnostics_;
};

void FileParser::HeaderInfo(TraceDatReader& reader) {
  reader.String();  // "header_page"
  file_.layout.ReadHeaderPage(reader.Blob(reader.U64()));
  reader.String();  // "header_event"
  reader.Blob(reader.U64());
}

void FileParser::FormatText(TraceDatReader& reader, std::string_view system) {
  const uint64_t at = reader.offset();
  const uint64_t size = reader.U64();
  const std::string text = reader.Blob(size);
  if (reader.failed()) return;
  std::optional<EventFormat> format;
  if (size <= kMaxFormat) format = ParseEventFormat(text, system);
  if (format.has_value()) {
    file_.formats.push_back(*std::move(format));
  } else if (!text.empty()) {
    diagnostics_.Count("event format that cannot be read", 1, at);
  }
}

void FileParser::FtraceFormats(TraceDatReader& reader) {
  const uint32_t count = reader.U32();
  for (uint32_t i = 0; i < count && !reader.failed(); ++i) FormatText(reader, "ftrace");
}

void FileParser::EventFormats(TraceDatReader& reader) {
  const uint32_t systems = reader.U32();
  for (uint32_t i = 0; i < systems && !reader.failed(); ++i) {
    const std::string system = reader.String();
    const uint32_t count = reader.U32();
    for (uint32_t j = 0; j < count && !reader.failed(); ++j) FormatText(reader, system);
  }
}

void FileParser::AddPages(uint64_t cpu, uint64_t offset, uint64_t size, bool compressed) {
  if (size == 0) return;
  if (cpu >= kMaxCpus || offset >= bytes_.size()) {
    diagnostics_.Count("trace data of a CPU that is not in the file", 1, offset);
    return;
  }
  if (size > bytes_.size() - offset) {
    diagnostics_.Count("trace data of a CPU that is cut short", 1, offset);
  }
  file_.pages.push_back({.cpu = static_cast<uint16_t>(cpu),
                         .offset = offset,
                         .bytes = std::min(size, bytes_.size() - offset),
                         .compressed = compressed});
}

void FileParser::CpuRanges(TraceDatReader& reader, uint32_t cpus) {
  for (uint32_t cpu = 0; cpu < std::min(cpus, kMaxCpus) && !reader.failed(); ++cpu) {
    const uint64_t offset = reader.U64();
    AddPages(cpu, offset, reader.U64(), false);
  }
}

void FileParser::BufferOption(TraceDatReader reader) {
  const uint64_t at = reader.U64();
  if (file_.version == 6) {
    TraceDatReader ranges(bytes_, at, file_.layout.order);
    if (ranges.String(16) == "flyrecord") CpuRanges(ranges, file_.cpus);
    return;
  }
  TraceDatReader section(bytes_, at, file_.layout.order);
  section.U16();
  const bool compressed = (section.U16() & kCompressedFlag) != 0;
  reader.String();  // the instance's name
  const std::string clock = reader.String();
  const uint32_t page_bytes = reader.U32();
  const uint32_t cpus = reader.U32();
  if (reader.failed() || section.failed()) return;
  if (!clock.empty()) file_.clock = clock;
  if (page_bytes >= 64 && page_bytes <= kMaxPageBytes) file_.layout.page_bytes = page_bytes;
  for (uint32_t i = 0; i < std::min(cpus, kMaxCpus) && !reader.failed(); ++i) {
    const uint32_t cpu = reader.U32();
    const uint64_t offset = reader.U64();
    AddPages(cpu, offset, reader.U64(), compressed);
  }
}

void FileParser::PointedSection(uint16_t id, uint64_t offset) {
  TraceDatReader head(bytes_, offset, file_.layout.order);
  head.U16();
  const bool compressed = (head.U16() & kCompressedFlag) != 0;
  head.U32();
  uint64_t size = head.U64();
  uint64_t unpacked = 0;
  if (compressed) {
    size = head.U32();
    unpacked = head.U32();
  }
  std::string data = head.Blob(size);
  if (!head.failed() && compressed) {
    Result<std::string> plain = Error{.message = "no codec"};
    if (file_.codec) plain = Decompress(*file_.codec, data, UnpackLimit(size, unpacked));
    data = plain.ok() ? std::move(plain).value() : std::string();
  }
  const MemoryBytes memory(std::move(data));
  TraceDatReader reader(memory, 0, file_.layout.order);
  if (id == kHeaderInfo) HeaderInfo(reader);
  if (id == kFtraceEvents) FtraceFormats(reader);
  if (id == kEventFormats) EventFormats(reader);
  if (id == kKallsyms) file_.kallsyms = reader.Blob(reader.U32());
  if (id == kCmdlines) file_.cmdlines = reader.Blob(reader.U64());
  if (head.failed() || reader.failed()) {
    diagnostics_.Count("section that is cut or damaged", 1, offset);
  }
}

void FileParser::OptionOf(uint16_t id, const std::string& data) {
  const MemoryBytes memory(data);
  TraceDatReader reader(memory, 0, file_.layout.order);
  switch (id) {
    case kDate: {
      // Microseconds, though old files have other units; only a date that can
      // be one counts.
      const int64_t micros = Integer(data);
      const bool plausible = micros > kYear2000Ns / 2000 && micros < 4 * (kYear2000Ns / 1000);
      if (plausible) file_.wall_offset_ns = micros * 1000;
      return;
    }
    case kCpuStat:
      if (file_.cpu_stats.size() < kMaxCpus) file_.cpu_stats.push_back(UpToNul(data));
      return;
    case kBuffer:
      return BufferOption(std::move(reader));
    case kTraceClock:
      if (file_.clock.empty()) file_.clock = ChosenClock(data);
      return;
    case kUname:
      file_.uname = UpToNul(data);
      return;
    case kOffset:
      file_.ring_clock.offset_ns += Integer(data);
      file_.ring_clock.offset_ns =
          std::clamp(file_.ring_clock.offset_ns, -kMaxOffsetNs, kMaxOffsetNs);
      return;
    case kCpuCount:
      file_.cpus = std::min(reader.U32(), kMaxCpus);
      return;
    case kVersion:
      file_.recorder = UpToNul(data);
      return;
    case kTscToNanoseconds: {
      file_.ring_clock.mult = reader.U32();
      file_.ring_clock.shift = reader.U32();
      const uint64_t offset = std::min<uint64_t>(reader.U64(), kMaxOffsetNs / 2);
      file_.ring_clock.offset_ns -= static_cast<int64_t>(offset);
      return;
    }
    case kHeaderInfo:
    case kFtraceEvents:
    case kEventFormats:
    case kKallsyms:
    case kCmdlines:
      return PointedSection(id, reader.U64());
    default:
      return;
  }
}

uint64_t FileParser::Options(TraceDatReader& reader) {
  for (;;) {
    const uint16_t id = reader.U16();
    if (reader.failed()) return 0;
    if (id == kDone && file_.version == 6) return 0;
    const std::string data = reader.Blob(reader.U32());
    if (reader.failed()) return 0;
    if (id == kDone) return LoadUnsigned(data, 0, 8, file_.layout.order);
    OptionOf(id, data);
  }
}

void FileParser::ReadVersion6(uint64_t offset) {
  TraceDatReader reader(bytes_, offset, file_.layout.order);
  HeaderInfo(reader);
  FtraceFormats(reader);
  EventFormats(reader);
  file_.kallsyms = reader.Blob(reader.U32());
  reader.Blob(reader.U32());  // printk formats
  file_.cmdlines = reader.Blob(reader.U64());
  const uint32_t cpus = reader.U32();
  file_.cpus = std::min(cpus, kMaxCpus);
  std::string mark = UpToNul(reader.Blob(10));
  if (mark.starts_with("options")) {
    Options(reader);
    mark = UpToNul(reader.Blob(10));
  }
  if (mark == "flyrecord") CpuRanges(reader, cpus);
  if (reader.failed()) {
    diagnostics_.Count("header that is cut or damaged", 1, reader.offset());
  } else if (mark.starts_with("latency")) {
    diagnostics_.Count("trace data that is text, not pages", 1, reader.offset());
  }
}

Status FileParser::ReadVersion7(uint64_t offset, const std::string& name) {
  TraceDatReader reader(bytes_, offset, file_.layout.order);
  const std::string codec = reader.String();
  reader.String();  // its version
  uint64_t next = reader.U64();
  if (codec == "zstd") file_.codec = BlockCodec::kZstd;
  if (codec == "zlib") file_.codec = BlockCodec::kZlib;
  if (!file_.codec && !codec.empty() && codec != "none") {
    return Error{.message = "compressed with " + codec.substr(0, 32) + ", which is not known",
                 .file = name,
                 .hint = "convert it: trace-cmd convert --compression none"};
  }
  std::set<uint64_t> seen;
  while (next != 0 && seen.size() < kMaxSections && seen.insert(next).second) {
    TraceDatReader section(bytes_, next, file_.layout.order);
    section.U16();
    const bool compressed = (section.U16() & kCompressedFlag) != 0;
    section.Blob(12);
    if (compressed) {
      const uint32_t size = section.U32();
      const uint32_t unpacked = section.U32();
      const std::string data = section.Blob(size);
      Result<std::string> plain = Error{.message = "no codec"};
      if (file_.codec) plain = Decompress(*file_.codec, data, UnpackLimit(size, unpacked));
      const MemoryBytes memory(plain.ok() ? std::move(plain).value() : std::string());
      TraceDatReader options(memory, 0, file_.layout.order);
      next = Options(options);
    } else {
      const uint64_t at = next;
      next = Options(section);
      if (section.failed()) diagnostics_.Count("section that is cut or damaged", 1, at);
    }
  }
  return {};
}

// Pages in compressed chunks of several.
class ChunkedPages : public PageFeed {
 public:
  ChunkedPages(const Bytes& bytes, const TraceDatFile& file, const CpuPages& pages,
               Diagnostics& diagnostics)
      : reader_(bytes, pages.offset, file.layout.order),
        end_(pages.offset + pages.bytes),
        page_bytes_(file.layout.page_bytes),
        codec_(file.codec),
        diagnostics_(diagnostics) {
    chunks_ = reader_.U32();
  }

  Result<bool> Next(std::string& page, uint64_t& offset) override {
    while (position_ >= chunk_.size()) {
      if (chunks_ == 0 || reader_.failed() || reader_.offset() >= end_) return false;
      --chunks_;
      ReadChunk();
    }
    page.assign(chunk_, position_, page_bytes_);
    position_ += page_bytes_;
    offset = chunk_offset_;
    return true;
  }

 private:
  void ReadChunk() {
    chunk_.clear();
    position_ = 0;
    chunk_offset_ = reader_.offset();
    const uint32_t size = reader_.U32();
    const uint32_t unpacked = reader_.U32();
    const std::string data = reader_.Blob(size);
    Result<std::string> plain = Error{.message = "no codec"};
    if (codec_) plain = Decompress(*codec_, data, UnpackLimit(size, unpacked));
    if (plain.ok() && !reader_.failed()) {
      chunk_ = std::move(plain).value();
    } else {
      diagnostics_.Count("compressed trace data that is cut or damaged", 1, chunk_offset_);
    }
  }

  TraceDatReader reader_;
  uint64_t end_;
  size_t page_bytes_;
  std::optional<BlockCodec> codec_;
  Diagnostics& diagnostics_;
  uint32_t chunks_ = 0;
  std::string chunk_;
  size_t position_ = 0;
  uint64_t chunk_offset_ = 0;
};

}  // namespace

std::unique_ptr<PageFeed> PagesOf(const Bytes& bytes, const TraceDatFile& file,
                                  const CpuPages& pages, Diagnostics& diagnostics) {
  if (pages.compressed) {
    return std::make_unique<ChunkedPages>(bytes, file, pages, diagnostics);
  }
  return PlainPages(bytes, pages.offset, pages.bytes, file.layout.page_bytes);
}

Result<TraceDatFile> ReadTraceDatFile(const Bytes& bytes, const std::string& name,
                                      Diagnostics& diagnostics) {
  TraceDatReader head(bytes, 0, ByteOrder::kLittle);
  if (head.Blob(kTraceDatMagic.size()) != kTraceDatMagic) {
    return Error{.message = "not a trace.dat of trace-cmd", .file = name, .offset = 0};
  }
  TraceDatFile file;
  const std::string version = head.String(16);
  file.version = version == "6" ? 6 : version == "7" ? 7 : 0;
  if (file.version == 0) {
    return Error{.message = "trace.dat of version '" + version.substr(0, 16) + "', not 6 or 7",
                 .file = name,
                 .hint = "convert it: trace-cmd convert --file-version 7"};
  }
  file.layout.order = head.Unsigned(1) == 1 ? ByteOrder::kBig : ByteOrder::kLittle;
  file.long_bytes = head.Unsigned(1) == 4 ? 4 : 8;
  const uint64_t page_bytes = LoadUnsigned(head.Blob(4), 0, 4, file.layout.order);
  if (page_bytes >= 64 && page_bytes <= kMaxPageBytes) {
    file.layout.page_bytes = static_cast<size_t>(page_bytes);
  }
  FileParser parser(bytes, file, diagnostics);
  if (file.version == 6) {
    parser.ReadVersion6(head.offset());
  } else {
    CULPRIT_TRY(parser.ReadVersion7(head.offset(), name));
  }
  if (file.pages.empty()) {
    return Error{.message = "trace.dat without trace data",
                 .file = name,
                 .hint = "a recording that was stopped hard: run trace-cmd restore"};
  }
  return file;
}

}  // namespace culprit::import_

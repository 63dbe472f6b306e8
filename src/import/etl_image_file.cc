// SPDX-License-Identifier: Apache-2.0
#include "import/etl_image_file.h"

#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "import/etl_text.h"

namespace culprit::import_ {
namespace {

namespace fs = std::filesystem;

constexpr uint16_t kImageX64 = 0x8664;
constexpr uint16_t kImageWideHeader = 0x20b;
constexpr size_t kImageExports = 0;
constexpr size_t kImageExceptions = 3;
constexpr size_t kImageDebug = 6;
constexpr uint32_t kImageCodeView = 2;
constexpr size_t kMaxImageExports = size_t{1} << 20;
constexpr size_t kMaxImageDebugEntries = 64;

struct ImageSection {
  uint32_t address = 0;
  uint32_t size = 0;  // in the file
  uint32_t offset = 0;
};
struct ImageDirectory {
  uint32_t address = 0;
  uint32_t size = 0;
};

// The parts of an image by their addresses when loaded.
class ImageLayout {
 public:
  explicit ImageLayout(std::string_view bytes) : bytes_(bytes) {}

  bool Read();
  // What is in the file from there on, up to the end of its section.
  std::string_view At(uint64_t address) const;
  std::string_view At(const ImageDirectory& directory) const {
    return At(directory.address).substr(0, directory.size);
  }
  ImageDirectory directory(size_t number) const {
    return number < directories_.size() ? directories_[number] : ImageDirectory();
  }
  uint16_t machine() const { return machine_; }
  uint32_t image_bytes() const { return image_bytes_; }

 private:
  std::string_view bytes_;
  uint16_t machine_ = 0;
  uint32_t image_bytes_ = 0;
  std::vector<ImageDirectory> directories_;
  std::vector<ImageSection> sections_;
};

bool ImageLayout::Read() {
  if (!bytes_.starts_with("MZ") || bytes_.size() < 64) return false;
  ByteReader place(bytes_.substr(60));
  const uint32_t at = place.U32();
  if (at >= bytes_.size() || !bytes_.substr(at).starts_with(std::string_view("PE\0\0", 4))) {
    return false;
  }
  ByteReader header(bytes_.substr(at + size_t{4}));
  machine_ = header.U16();
  const uint16_t sections = header.U16();
  header.Bytes(12);
  const uint16_t optional_bytes = header.U16();
  header.U16();
  const std::string_view optional = header.Bytes(optional_bytes);
  if (header.failed() || optional.size() < 64) return false;
  ByteReader fields(optional);
  const bool wide = fields.U16() == kImageWideHeader;
  fields.Bytes(54);
  image_bytes_ = fields.U32();
  fields.Bytes((wide ? 108 : 92) - size_t{60});
  const uint32_t directories = fields.U32();
  for (uint32_t i = 0; i < directories && i < 16 && !fields.failed(); ++i) {
    const uint32_t address = fields.U32();
    directories_.push_back({address, fields.U32()});
  }
  for (uint16_t i = 0; i < sections && !header.failed(); ++i) {
    header.Bytes(12);
    ImageSection section;
    section.address = header.U32();
    section.size = header.U32();
    section.offset = header.U32();
    header.Bytes(16);
    if (!header.failed()) sections_.push_back(section);
  }
  return true;
}

std::string_view ImageLayout::At(uint64_t address) const {
  for (const ImageSection& section : sections_) {
    if (address < section.address || address - section.address >= section.size) continue;
    if (section.offset > bytes_.size()) return {};
    const std::string_view data = bytes_.substr(section.offset, section.size);
    return data.substr(std::min<uint64_t>(address - section.address, data.size()));
  }
  return {};
}

std::string ReadImageDebugId(const ImageLayout& layout) {
  std::string_view entries = layout.At(layout.directory(kImageDebug));
  for (size_t i = 0; i < kMaxImageDebugEntries && entries.size() >= 28; ++i) {
    ByteReader entry(entries);
    entry.Bytes(12);
    const uint32_t type = entry.U32();
    entry.U32();
    const std::string_view data = layout.At(entry.U32());
    entries.remove_prefix(28);
    if (type != kImageCodeView || !data.starts_with("RSDS")) continue;
    ByteReader id(data.substr(4));
    const std::string text = TakeDebugId(id);
    if (!id.failed()) return text;
  }
  return {};
}

std::unordered_map<uint32_t, std::string> ReadImageExports(const ImageLayout& layout) {
  std::unordered_map<uint32_t, std::string> names;
  const ImageDirectory directory = layout.directory(kImageExports);
  ByteReader header(layout.At(directory));
  header.Bytes(24);
  const uint32_t count = header.U32();
  const std::string_view functions = layout.At(header.U32());
  const std::string_view texts = layout.At(header.U32());
  const std::string_view ordinals = layout.At(header.U32());
  if (header.failed()) return names;
  for (size_t i = 0; i < count && i < kMaxImageExports; ++i) {
    if (texts.size() < 4 * (i + 1) || ordinals.size() < 2 * (i + 1)) break;
    ByteReader text_at(texts.substr(4 * i));
    ByteReader ordinal_at(ordinals.substr(2 * i));
    const size_t ordinal = ordinal_at.U16();
    if (functions.size() < 4 * (ordinal + 1)) continue;
    ByteReader function_at(functions.substr(4 * ordinal));
    const uint32_t function = function_at.U32();
    // Those that point into the directory are names in another image.
    if (function - directory.address < directory.size) continue;
    ByteReader text(layout.At(text_at.U32()).substr(0, 1024));
    names.try_emplace(function, TakeNarrowText(text));
  }
  return names;
}

}  // namespace

std::optional<EtlImageFile> EtlImageFile::Parse(std::string_view bytes) {
  ImageLayout layout(bytes);
  if (!layout.Read()) return std::nullopt;
  EtlImageFile file;
  file.image_bytes_ = layout.image_bytes();
  file.debug_id_ = ReadImageDebugId(layout);
  if (layout.machine() != kImageX64) return file;
  file.names_ = ReadImageExports(layout);
  ByteReader table(layout.At(layout.directory(kImageExceptions)));
  while (table.remaining() >= 12) {
    const uint32_t start = table.U32();
    const uint32_t end = table.U32();
    table.U32();
    if (start < end) file.functions_.push_back({start, end});
  }
  std::sort(file.functions_.begin(), file.functions_.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  return file;
}

std::optional<EtlImageFile::Function> EtlImageFile::Find(uint64_t offset) const {
  auto it =
      std::upper_bound(functions_.begin(), functions_.end(), offset,
                       [](uint64_t value, const Range& range) { return value < range.start; });
  if (it == functions_.begin() || offset >= (--it)->end) return std::nullopt;
  const auto name = names_.find(it->start);
  return Function{it->start, name == names_.end() ? std::string_view() : name->second};
}

// "\Device\HarddiskVolume2\Windows\x.dll", "\SystemRoot\x.dll", "C:\Windows\x.dll",
// "\??\C:\Windows\x.dll": all are Windows\x.dll of the recorded machine.
std::string FindImageFile(const std::string& root, std::string_view windows_path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= windows_path.size();) {
    const size_t end = std::min(windows_path.find('\\', begin), windows_path.size());
    if (end > begin) parts.push_back(ModuleNameOf(windows_path.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (!parts.empty() && parts.front() == "??") parts.erase(parts.begin());
  if (parts.size() > 2 && parts.front() == "device") parts.erase(parts.begin(), parts.begin() + 2);
  if (!parts.empty() && parts.front().ends_with(':')) parts.erase(parts.begin());
  if (!parts.empty() && parts.front() == "systemroot") parts.front() = "windows";
  fs::path path = root;
  for (const std::string& part : parts) {
    if (part == "..") return {};
    fs::path next;
    std::error_code code;
    for (fs::directory_iterator it(path, code), end; !code && it != end; it.increment(code)) {
      if (ModuleNameOf(it->path().filename().string()) == part) next = it->path();
    }
    if (next.empty()) return {};
    path = next;
  }
  std::error_code code;
  return !parts.empty() && fs::is_regular_file(path, code) ? path.string() : std::string();
}

}  // namespace culprit::import_

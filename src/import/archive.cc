// SPDX-License-Identifier: Apache-2.0
#include "import/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "import/stored_bytes.h"

namespace culprit::import_ {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr uint64_t kMemberMemoryBytes = uint64_t{64} << 20;

// Where a member goes: a string until it gets big, then a file that has no name
// any more.
class MemberStore {
 public:
  explicit MemberStore(UnpackBudget& budget) : budget_(budget) {}
  MemberStore(const MemberStore&) = delete;
  MemberStore& operator=(const MemberStore&) = delete;
  ~MemberStore() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  Status Append(std::string_view chunk) {
    const uint64_t after = memory_.size() + chunk.size();
    if (fd_ < 0 && (after > kMemberMemoryBytes || after > budget_.memory_bytes)) {
      CULPRIT_TRY(OpenFile());
      CULPRIT_TRY(WriteAll(memory_));
      memory_ = {};
    }
    if (fd_ >= 0) return WriteAll(chunk);
    memory_.append(chunk);
    return {};
  }

  Result<std::shared_ptr<const Bytes>> Take() {
    if (fd_ < 0) {
      budget_.memory_bytes -= memory_.size();
      return std::shared_ptr<const Bytes>(std::make_shared<MemoryBytes>(std::move(memory_)));
    }
    CULPRIT_ASSIGN(InputFile file, InputFile::Open(path_));
    return std::shared_ptr<const Bytes>(std::make_shared<FileBytes>(std::move(file)));
  }

 private:
  Status OpenFile() {
    std::error_code code;
    std::filesystem::path folder = std::filesystem::temp_directory_path(code);
    if (code) folder = "/tmp";
    path_ = (folder / "culprit-import-XXXXXX").string();
    fd_ = ::mkstemp(path_.data());
    if (fd_ >= 0) return {};
    Error error = ErrnoError("make a temporary file", path_);
    error.hint = "TMPDIR says where temporary files go";
    path_.clear();
    return error;
  }

  Status WriteAll(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return ErrnoError("write a temporary file", path_);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
  }

  UnpackBudget& budget_;
  std::string memory_;
  std::string path_;
  int fd_ = -1;
};

// libarchive's view of Bytes.
struct Input {
  const Bytes& bytes;
  uint64_t offset = 0;
  std::string chunk = {};
  std::optional<Error> error = {};
};

la_ssize_t ReadInput(archive* handle, void* data, const void** chunk) {
  auto& input = *static_cast<Input*>(data);
  const Status status = input.bytes.ReadAt(input.offset, kChunkBytes, input.chunk);
  if (!status.ok()) {
    input.error = status.error();
    archive_set_error(handle, EIO, "cannot read");
    return ARCHIVE_FATAL;
  }
  input.offset += input.chunk.size();
  *chunk = input.chunk.data();
  return static_cast<la_ssize_t>(input.chunk.size());
}

la_int64_t SkipInput(archive*, void* data, la_int64_t request) {
  auto& input = *static_cast<Input*>(data);
  const uint64_t left = input.bytes.size() - std::min(input.offset, input.bytes.size());
  const uint64_t skipped = request <= 0 ? 0 : std::min(left, static_cast<uint64_t>(request));
  input.offset += skipped;
  return static_cast<la_int64_t>(skipped);
}

la_int64_t SeekInput(archive*, void* data, la_int64_t offset, int whence) {
  auto& input = *static_cast<Input*>(data);
  const auto size = static_cast<int64_t>(input.bytes.size());
  int64_t base = 0;
  if (whence == SEEK_CUR) base = static_cast<int64_t>(input.offset);
  if (whence == SEEK_END) base = size;
  int64_t target = 0;
  if (__builtin_add_overflow(base, offset, &target)) return ARCHIVE_FATAL;
  target = std::clamp<int64_t>(target, 0, size);
  input.offset = static_cast<uint64_t>(target);
  return target;
}

struct CloseArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
using Handle = std::unique_ptr<archive, CloseArchive>;

Error ArchiveError(archive* handle, const Input& input, const std::string& name) {
  if (input.error) return *input.error;
  const char* text = archive_error_string(handle);
  return {.message = std::string("cannot unpack: ") + (text == nullptr ? "unknown error" : text),
          .file = name,
          .offset = input.offset};
}

Result<Handle> OpenArchive(Input& input, const std::string& name) {
  Handle handle(archive_read_new());
  CULPRIT_CHECK(handle != nullptr);
  archive_read_support_filter_gzip(handle.get());
  archive_read_support_filter_bzip2(handle.get());
  archive_read_support_filter_xz(handle.get());
  archive_read_support_filter_lzma(handle.get());
  archive_read_support_filter_zstd(handle.get());
  archive_read_support_filter_lz4(handle.get());
  archive_read_support_format_tar(handle.get());
  archive_read_support_format_zip(handle.get());
  archive_read_support_format_7zip(handle.get());
  archive_read_support_format_raw(handle.get());
  archive_read_set_seek_callback(handle.get(), SeekInput);
  if (archive_read_open2(handle.get(), &input, nullptr, ReadInput, SkipInput, nullptr) !=
      ARCHIVE_OK) {
    return ArchiveError(handle.get(), input, name);
  }
  return handle;
}

std::string MemberPath(archive* handle, archive_entry* entry, size_t index) {
  if (archive_format(handle) == ARCHIVE_FORMAT_RAW) return {};
  const char* path = archive_entry_pathname_utf8(entry);
  if (path == nullptr) path = archive_entry_pathname(entry);
  if (path == nullptr) return "member-" + std::to_string(index);
  std::string_view view = path;
  while (view.starts_with("./")) view.remove_prefix(2);
  return std::string(view);
}

// Copies one member's data; what came before a failure is in `store`.
Status CopyMember(archive* handle, const Input& input, const std::string& name,
                  UnpackBudget& budget, MemberStore& store) {
  std::string chunk(kChunkBytes, '\0');
  for (;;) {
    const la_ssize_t count = archive_read_data(handle, chunk.data(), chunk.size());
    if (count == 0) return {};
    if (count == ARCHIVE_RETRY || count == ARCHIVE_WARN) continue;
    if (count < 0) return ArchiveError(handle, input, name);
    if (static_cast<uint64_t>(count) > budget.bytes) {
      return Error{.message = "unpacks to more than the limit allows",
                   .file = name,
                   .hint = "unpack it yourself and import the part that matters"};
    }
    budget.bytes -= static_cast<uint64_t>(count);
    CULPRIT_TRY(store.Append(std::string_view(chunk.data(), static_cast<size_t>(count))));
  }
}

}  // namespace

Packing PackingOf(std::string_view head) {
  using namespace std::string_view_literals;
  for (const std::string_view magic :
       {"\x1f\x8b"sv, "\x28\xb5\x2f\xfd"sv, "\xfd\x37zXZ\0"sv, "BZh"sv, "\x04\x22\x4d\x18"sv}) {
    if (head.starts_with(magic)) return Packing::kCompressed;
  }
  for (const std::string_view magic : {"PK\x03\x04"sv, "PK\x05\x06"sv, "7z\xbc\xaf\x27\x1c"sv}) {
    if (head.starts_with(magic)) return Packing::kArchive;
  }
  const bool tar = head.size() >= 262 && head.substr(257, 5) == "ustar";
  return tar ? Packing::kArchive : Packing::kPlain;
}

Unpacked Unpack(const Bytes& bytes, const std::string& name, UnpackBudget& budget) {
  Unpacked out;
  Input input{.bytes = bytes};
  auto opened = OpenArchive(input, name);
  if (!opened.ok()) {
    out.error = opened.error();
    return out;
  }
  archive* const handle = opened.value().get();
  for (size_t index = 0;; ++index) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(handle, &entry);
    if (code == ARCHIVE_EOF) return out;
    if (code < ARCHIVE_WARN) {
      out.error = ArchiveError(handle, input, name);
      return out;
    }
    const bool raw = archive_format(handle) == ARCHIVE_FORMAT_RAW;
    if (!raw && archive_entry_filetype(entry) != AE_IFREG) continue;
    if (budget.members == 0) {
      out.error = Error{.message = "holds more files than the limit allows", .file = name};
      return out;
    }
    --budget.members;
    MemberStore store(budget);
    const Status copied = CopyMember(handle, input, name, budget, store);
    auto member = store.Take();
    if (!member.ok()) {
      out.error = member.error();
      return out;
    }
    const bool empty = member.value()->size() == 0;
    if (copied.ok() || !empty) {
      out.files.push_back({MemberPath(handle, entry, index), std::move(member).value()});
    }
    if (!copied.ok()) {
      out.error = copied.error();
      return out;
    }
  }
}

}  // namespace culprit::import_

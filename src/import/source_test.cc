// SPDX-License-Identifier: Apache-2.0
#include "import/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/test_folder.h"
#include "import/archive.h"
#include "import/stored_bytes.h"
#include "import/trace_folder.h"

namespace culprit::import_::TEST_FILE {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

la_ssize_t Append(archive*, void* data, const void* bytes, size_t count) {
  static_cast<std::string*>(data)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

// An archive (or, with the raw format, a compressed file) made by libarchive.
std::string Pack(int format, int filter, const Files& files) {
  std::string out;
  archive* handle = archive_write_new();
  archive_write_set_format(handle, format);
  archive_write_add_filter(handle, filter);
  archive_write_set_bytes_per_block(handle, 0);
  archive_write_open(handle, &out, nullptr, Append, nullptr);
  for (const auto& [path, content] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, path.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(handle, entry);
    archive_write_data(handle, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(handle);
  archive_write_free(handle);
  return out;
}

std::string Compressed(int filter, const std::string& content) {
  return Pack(ARCHIVE_FORMAT_RAW, filter, {{"data", content}});
}

// With the folders that a name goes through.
std::string WriteIn(const TestFolder& folder, const std::string& name, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
  return folder.Write(name, content);
}

std::string Content(const Bytes& bytes) {
  std::string out;
  EXPECT_TRUE(bytes.ReadAt(0, bytes.size(), out).ok());
  return out;
}

// "name=content" of single files, "name{a,b}" of folders, "!" of errors.
std::vector<std::string> Describe(const std::vector<Result<Source>>& sources,
                                  const std::string& folder) {
  std::vector<std::string> out;
  for (const Result<Source>& source : sources) {
    if (!source.ok()) {
      out.push_back("!" + source.error().message);
      continue;
    }
    std::string text = source.value().name();
    if (text.starts_with(folder)) text = text.substr(folder.size());
    if (!source.value().is_folder()) {
      out.push_back(text + "=" + Content(source.value().bytes()));
      continue;
    }
    for (const SourceFile& file : source.value().files()) text += "{" + file.path + "}";
    out.push_back(text);
  }
  return out;
}

TEST(Source, CompressedFilesLookPlain) {
  const TestFolder folder;
  for (const int filter : {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD,
                           ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_LZ4}) {
    const std::string path = WriteIn(folder, "f", Compressed(filter, "hello"));
    EXPECT_EQ(Describe(OpenSources(path), folder.path()), std::vector<std::string>{"/f=hello"})
        << filter;
  }
}

TEST(Source, ArchivesGiveTheirMembersAndWhatIsPackedInThem) {
  const TestFolder folder;
  const std::string inner = Compressed(ARCHIVE_FILTER_ZSTD, "deep");
  const std::string path = WriteIn(folder, "a.zip",
                                   Pack(ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE,
                                        {{"b/x.txt", "x"}, {"a.zst", inner}, {".hidden", "no"}}));
  EXPECT_EQ(Describe(OpenSources(path), folder.path()),
            (std::vector<std::string>{"/a.zip:a.zst=deep", "/a.zip:b/x.txt=x"}));
}

TEST(Source, FoldersOfATraceStayTogether) {
  const Files files = {{"k/metadata", "m"},
                       {"k/chan_0", "c"},
                       {"k/index/chan_0.idx", "i"},
                       {"k/README", "r"},
                       {"u/info", "i"},
                       {"u/task.txt", "t"},
                       {"z.txt", "z"},
                       {"p/formats/header_page", "h"},
                       {"p/traces/cpu0", "0"}};
  const TestFolder folder;
  for (const auto& [name, content] : files) WriteIn(folder, "d/" + name, content);
  const std::vector<std::string> expected = {
      "{README}{chan_0}{metadata}", "{formats/header_page}{traces/cpu0}", "{info}{task.txt}"};
  const auto on_disk = Describe(OpenSources(folder.path() + "/d"), folder.path() + "/d");
  EXPECT_EQ(on_disk, (std::vector<std::string>{"/k" + expected[0], "/p" + expected[1],
                                               "/u" + expected[2], "/z.txt=z"}));
  const std::string tar =
      WriteIn(folder, "t.tgz", Pack(ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP, files));
  EXPECT_EQ(Describe(OpenSources(tar), folder.path()),
            (std::vector<std::string>{"/t.tgz:k" + expected[0], "/t.tgz:p" + expected[1],
                                      "/t.tgz:u" + expected[2], "/t.tgz:z.txt=z"}));
  const auto inputs = InputsBelow(folder.path() + "/d", 100);
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ(inputs.value().size(), 4u);
  EXPECT_EQ(inputs.value().front(), folder.path() + "/d/k");
}

TEST(Source, BombsEndInAnError) {
  const TestFolder folder;
  const std::string path =
      WriteIn(folder, "bomb", Compressed(ARCHIVE_FILTER_ZSTD, std::string(50'000'000, 'x')));
  const auto sources = OpenSources(path, {.max_unpacked_bytes = 1'000'000});
  ASSERT_EQ(sources.size(), 2u);  // what came before the limit, and why it ended
  EXPECT_TRUE(sources[0].ok());
  EXPECT_LE(sources[0].value().bytes().size(), 1'000'000u);
  EXPECT_FALSE(sources[1].ok());
  const std::string many = WriteIn(
      folder, "many.zip", Pack(ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, {{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(Describe(OpenSources(many, {.max_members = 1}), folder.path()).back(),
            "!holds more files than the limit allows");
}

TEST(Source, BigMembersGoThroughAFile) {
  const std::string big(300'000, 'y');
  const MemoryBytes bytes(Compressed(ARCHIVE_FILTER_ZSTD, big));
  UnpackBudget budget{.bytes = 1'000'000, .members = 1, .memory_bytes = 1000};
  const Unpacked unpacked = Unpack(bytes, "big", budget);
  ASSERT_EQ(unpacked.files.size(), 1u);
  EXPECT_EQ(Content(*unpacked.files[0].bytes), big);
}

TEST(Source, AnyTruncationIsAnErrorOrAPart) {
  const Files files = {{"a", "alpha alpha alpha"}, {"b/metadata", "beta"}};
  for (const std::string& whole : {Pack(ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, files),
                                   Pack(ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP, files),
                                   Compressed(ARCHIVE_FILTER_XZ, "hello hello")}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      const MemoryBytes bytes(whole.substr(0, size));
      UnpackBudget budget{.bytes = 1000, .members = 10};
      const Unpacked unpacked = Unpack(bytes, "cut", budget);
      EXPECT_LE(unpacked.files.size(), 2u);
    }
  }
}

TEST(Source, MissingFilesAreErrors) {
  const auto sources = OpenSources("/does/not/exist");
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_FALSE(sources[0].ok());
}

TEST(BytesReader, LinesAreTheSameForEveryBuffer) {
  const std::string text = "one\r\n\ntwo\nlonger than most\nlast";
  const std::vector<std::string> expected = {"one", "", "two", "longer than most", "last"};
  const MemoryBytes bytes(text);
  for (size_t buffer = 1; buffer <= text.size() + 1; ++buffer) {
    BytesReader reader(bytes, 0, buffer);
    std::vector<std::string> lines;
    for (std::string line; reader.Line(line).value();) lines.push_back(line);
    EXPECT_EQ(lines, expected) << buffer;
    EXPECT_TRUE(reader.AtEnd());
  }
}

TEST(BytesReader, LongLinesAreCut) {
  const MemoryBytes bytes("0123456789\nnext\n");
  BytesReader reader(bytes, 0, 3);
  std::string line;
  EXPECT_TRUE(reader.Line(line, 4).value());
  EXPECT_EQ(line, "0123");
  EXPECT_TRUE(reader.cut());
  EXPECT_TRUE(reader.Line(line, 4).value());
  EXPECT_EQ(line, "next");
  EXPECT_FALSE(reader.cut());
  EXPECT_FALSE(reader.Line(line).value());
}

TEST(BytesReader, PeeksAndSkips) {
  const MemoryBytes bytes("abcdef");
  BytesReader reader(bytes, 1, 2);
  EXPECT_EQ(reader.Peek(3).value(), "bcd");
  reader.Skip(2);
  EXPECT_EQ(reader.Peek(10).value(), "def");
  reader.Skip(100);
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_EQ(reader.Peek(1).value(), "");
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE

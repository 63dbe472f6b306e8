// SPDX-License-Identifier: Apache-2.0
// What every importer must survive: an input cut at any byte. It gives a trace
// that keeps account of its time, or an error that names the file; it tells
// where the damage is; and a failed import leaves nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "base/test_folder.h"
#include "foreign_samples.h"
#include "import/import_run.h"
#include "import/imported_trace.h"

namespace culprit::TEST_FILE {
namespace {

constexpr size_t kSmallBytes = 6000;  // larger files are cut at every seventh byte

const import_::Importer& ImporterOf(std::string_view name) {
  for (const import_::Importer& importer : import_::Importers()) {
    if (importer.name == name) return importer;
  }
  ADD_FAILURE() << "no importer " << name;
  return import_::Importers().front();
}

import_::Source SourceOf(const std::map<std::string, std::string>& files) {
  std::vector<import_::SourceFile> all;
  for (const auto& [path, bytes] : files) {
    all.push_back({path, std::make_shared<import_::MemoryBytes>(bytes)});
  }
  return import_::Source("cut", std::move(all));
}

TEST(ForeignCut, EveryImporterHasSamplesThatItRecognisesAndReads) {
  std::set<std::string_view> read;
  for (const ForeignSample& sample : ForeignSamples()) {
    const import_::Source source = SourceOf(sample.files);
    const auto chosen = import_::ChooseImporter(source, "");
    ASSERT_TRUE(chosen.ok()) << sample.format;
    EXPECT_EQ(chosen.value()->name, sample.format);
    const auto imported = import_::ImportTrace(*chosen.value(), source, {.symbols = false});
    ASSERT_TRUE(imported.status.ok()) << sample.format;
    EXPECT_FALSE(imported.trace.events.empty()) << sample.format;
    read.insert(sample.format);
  }
  EXPECT_EQ(read.size(), import_::Importers().size());
}

// A row that says where in the file something is wrong.
bool HasPlace(const Diagnostics& diagnostics, uint64_t size, std::string_view format) {
  bool any = false;
  for (const auto& [sentence, row] : diagnostics.rows()) {
    if (!row.first_offset) continue;
    any = true;
    EXPECT_LE(*row.first_offset, size) << format << ": " << sentence;
  }
  return any;
}

TEST(ForeignCut, AtEveryByteGivesAWholeTraceOrAnError) {
  std::map<std::string_view, size_t> told;  // by format: cuts whose place was told
  for (const ForeignSample& sample : ForeignSamples()) {
    const import_::Importer& importer = ImporterOf(sample.format);
    uint64_t largest = 0;
    for (const auto& [path, bytes] : sample.files) {
      largest = std::max<uint64_t>(largest, bytes.size());
    }
    for (const auto& [path, bytes] : sample.files) {
      const size_t step = bytes.size() > kSmallBytes ? 7 : 1;
      for (size_t size = 0; size < bytes.size(); size += step) {
        std::map<std::string, std::string> files = sample.files;
        files[path].resize(size);
        const auto imported = import_::ImportTrace(importer, SourceOf(files), {.symbols = false});
        if (!imported.status.ok()) {
          EXPECT_FALSE(imported.status.error().file.empty()) << sample.format << " at " << size;
          ++told[sample.format];
          continue;
        }
        EXPECT_EQ(imported.Problem(), "") << sample.format << " at " << size;
        told[sample.format] += HasPlace(imported.diagnostics, largest, sample.format) ? 1 : 0;
      }
    }
  }
  for (const import_::Importer& importer : import_::Importers()) {
    EXPECT_GT(told[importer.name], 0u) << importer.name << " never tells where a file is damaged";
  }
}

TEST(ForeignCut, AFailedImportLeavesNothing) {
  const TestFolder folder;
  for (const ForeignSample& sample : ForeignSamples()) {
    for (const auto& [path, bytes] : sample.files) {
      for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 7) {
        std::map<std::string, std::string> files = sample.files;
        files[path].resize(size);
        const std::string out = folder / "out.ctrace";
        const auto outcome = import_::ImportOne(
            SourceOf(files), {.options = {.symbols = false}, .format = std::string(sample.format)},
            out);
        EXPECT_EQ(std::filesystem::exists(out), outcome.ok()) << sample.format << " at " << size;
        std::filesystem::remove(out);
        EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << sample.format;
      }
    }
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "base/test_folder.h"
#include "export/sample_trace.h"
#include "export/target.h"

namespace culprit::export_::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class ExportSqliteTest : public testing::Test {
 protected:
  size_t FilesInFolder() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  // Rows as "a|b", NULL as "-", joined by newlines.
  std::string Query(const std::string& sql) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open_v2(path_.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    std::string text;
    const auto add_row = [](void* out, int columns, char** values, char**) {
      auto& rows = *static_cast<std::string*>(out);
      if (!rows.empty()) rows += "\n";
      for (int i = 0; i < columns; ++i) {
        rows += (i == 0 ? "" : "|") + std::string(values[i] == nullptr ? "-" : values[i]);
      }
      return 0;
    };
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), add_row, &text, &message), SQLITE_OK) << message;
    sqlite3_free(message);
    sqlite3_close(database);
    return text;
  }

  TestFolder folder_;
  std::string path_ = folder_ / "t.db";
};

TEST_F(ExportSqliteTest, HoldsTheWholeTrace) {
  const auto summary = ExportSqlite(SampleReader(), {}, path_, Overwrite::kRefuse);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary.value().events, SampleTrace().events.size());
  EXPECT_EQ(Query("SELECT * FROM process"), "0|10|my browser|browser --tab=\"a;b\"|-|-|-");
  EXPECT_EQ(Query("SELECT * FROM thread"),
            "0|11|0|UI|user|1000|-\n1|12|0|W0|user|-|-\n2|-1|-|disk|device|-|-");
  EXPECT_EQ(Query("SELECT name FROM module ORDER BY id"), "app\nfs.sys");
  EXPECT_EQ(Query("SELECT * FROM frame WHERE function IS NULL"), "3|0|-|-|-|6699|0|0|app!+0x1a2b");
  EXPECT_EQ(Query("SELECT * FROM instance"), "0|TabCreate|0|1000|1900");
  EXPECT_EQ(Query("SELECT value FROM trace WHERE key IN ('machine', 'label.release', "
                  "'property.drops.cpu0', 'complete') ORDER BY key"),
            "1\n\"7\"\nm1\n3");
  EXPECT_EQ(Query("SELECT count(*) FROM event"), std::to_string(SampleTrace().events.size()));
  EXPECT_EQ(Query("SELECT kind, time_ns, dur_ns, thread, peer, stack, cpu, flags, arg0, arg1, name "
                  "FROM event WHERE kind IN ('ready', 'syscall', 'marker') ORDER BY time_ns, kind"),
            "marker|1000|0|0|-|-|-|begin|-|5|TabCreate\n"
            "syscall|1100|300|0|-|0|-|-|98|-11|-\n"
            "ready|1400|50|0|1|1|0|preempted,inferred|-|-|-\n"
            "marker|1900|0|0|-|-|-|end|-|5|TabCreate");
  EXPECT_EQ(FilesInFolder(), 1u);
}

// docs/export.md has a row a table: | `name` | column, column (remark), ... |
TEST_F(ExportSqliteTest, HasTheTablesAndColumnsThatAreDocumented) {
  ASSERT_TRUE(ExportSqlite(SampleReader(), {}, path_, Overwrite::kRefuse).ok());
  std::ifstream page(CULPRIT_SOURCE_DIR "/docs/export.md");
  std::map<std::string, std::vector<std::string>> documented;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) here = line == "## sqlite";
    if (!here || !line.starts_with("| `")) continue;
    const size_t end = line.find('`', 3);
    std::string columns = line.substr(line.find('|', end) + 1);
    columns = std::regex_replace(columns, std::regex(R"(\([^)]*\)|:.*|\|)"), "");
    std::istringstream words(columns);
    for (std::string word; std::getline(words, word, ',');) {
      word.erase(0, word.find_first_not_of(' '));
      word.erase(word.find_last_not_of(' ') + 1);
      documented[line.substr(3, end - 3)].push_back(word);
    }
  }
  std::map<std::string, std::vector<std::string>> actual;
  std::istringstream rows(
      Query("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table' ORDER BY m.name, c.cid"));
  for (std::string row; std::getline(rows, row);) {
    actual[row.substr(0, row.find('|'))].push_back(row.substr(row.find('|') + 1));
  }
  EXPECT_EQ(actual, documented);
}

TEST_F(ExportSqliteTest, ConservesTheTimeOfEveryKind) {
  ASSERT_TRUE(ExportSqlite(SampleReader(), {}, path_, Overwrite::kRefuse).ok());
  for (size_t i = 0; i < trace::kEventKinds; ++i) {
    int64_t total = 0;
    for (const trace::Event& event : SampleTrace().events) {
      if (static_cast<size_t>(event.kind) == i) total += event.dur_ns;
    }
    EXPECT_EQ(Query("SELECT sum(dur_ns) FROM event WHERE kind = '" +
                    std::string(trace::kEventKindNames[i]) + "'"),
              std::to_string(total));
  }
}

TEST_F(ExportSqliteTest, StacksOfEventsHaveTheirText) {
  ASSERT_TRUE(ExportSqlite(SampleReader(), {}, path_, Overwrite::kRefuse).ok());
  EXPECT_EQ(Query("SELECT id, parent, depth, text FROM stack ORDER BY id"),
            "0|-|1|app!main\n"
            "1|0|2|app!main;fs.sys!AcquireMDU\n"
            "2|0|2|-\n"
            "3|2|3|app!main;app!operator()(int; char)\n\uFFFD;app!+0x1a2b");
  EXPECT_EQ(Query("SELECT text, sum(dur_ns) AS ns FROM event JOIN stack ON stack.id = event.stack "
                  "WHERE kind = 'wait' GROUP BY stack.id ORDER BY ns DESC LIMIT 1"),
            "app!main;fs.sys!AcquireMDU|300");
}

TEST_F(ExportSqliteTest, IsSoundAndIndexed) {
  ASSERT_TRUE(ExportSqlite(SampleReader(), {}, path_, Overwrite::kRefuse).ok());
  EXPECT_EQ(Query("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(Query("PRAGMA foreign_key_check"), "");
  EXPECT_NE(Query("EXPLAIN QUERY PLAN SELECT * FROM event WHERE thread = 1 AND time_ns > 5")
                .find("event_by_thread"),
            std::string::npos);
}

TEST_F(ExportSqliteTest, NeverOverwritesUnlessAllowed) {
  ASSERT_TRUE(WriteWholeFile(path_, "mine", Overwrite::kRefuse).ok());
  const auto refused = ExportSqlite(SampleReader(), {}, path_, Overwrite::kRefuse);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().ToString(), path_ + ": exists already; nothing was written");
  EXPECT_EQ(ReadWholeFile(path_).value(), "mine");
  EXPECT_EQ(FilesInFolder(), 1u);
  ASSERT_TRUE(ExportSqlite(SampleReader(), {}, path_, Overwrite::kAllow).ok());
  EXPECT_EQ(Query("SELECT count(*) FROM instance"), "1");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(ExportSqliteTest, LeavesNothingBehindWhenItFails) {
  const auto missing = ExportSqlite(SampleReader(), {}, folder_ / "no/t.db", Overwrite::kRefuse);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().file, folder_ / "no/t.db");
  fs::create_directory(path_);
  EXPECT_FALSE(ExportSqlite(SampleReader(), {}, path_, Overwrite::kAllow).ok());
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(ExportSqliteTest, OfADamagedTraceHasTheReadableBlocks) {
  const auto reader = trace::TraceReader::FromBytes(DamagedBytes(0), "damaged");
  ASSERT_TRUE(reader.ok());
  const auto summary = ExportSqlite(reader.value(), {}, path_, Overwrite::kRefuse);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(Query("SELECT count(*) FROM event"),
            std::to_string(SampleTrace().events.size() - reader.value().blocks()[0].events));
  EXPECT_FALSE(summary.value().diagnostics.empty());
}

}  // namespace
}  // namespace culprit::export_::TEST_FILE

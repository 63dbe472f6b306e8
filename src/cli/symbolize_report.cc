// SPDX-License-Identifier: Apache-2.0
#include "cli/symbolize_report.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using report::Table;
using symbol::Download;

constexpr size_t kMaxRows = 100;
constexpr std::string_view kKernel = "[kernel]";

std::string_view StateText(Download::State state) {
  switch (state) {
    case Download::State::kWaiting:
      return "not asked for";
    case Download::State::kHere:
      return "fetched";
    case Download::State::kUnknown:
      return "no server has it";
    case Download::State::kTooLate:
      return "did not come in time";
    case Download::State::kTooLarge:
      return "larger than --max-bytes leaves";
    case Download::State::kFailed:
      return "server failed";
  }
  return {};
}

bool IsMissing(const ModuleFacts& facts) {
  return facts.files.path.empty() && !facts.module.key.build_id.empty();
}

std::string FoundText(const ModuleFacts& facts, bool kernel_symbols) {
  if (facts.module.name == kKernel) return kernel_symbols ? "by --kallsyms" : "needs --kallsyms";
  if (facts.module.key.build_id.empty()) {
    return facts.module.key.path.starts_with('/') ? "has no build-id: cannot be found again"
                                                  : "is no file with a build-id";
  }
  std::string text = facts.files.path;
  if (text.empty()) {
    text = "missing";
  } else if (facts.files.lines) {
    text += ", with lines";
  } else {
    text += facts.files.names ? ", no lines" : ", stripped";
  }
  for (const auto& [what, download] :
       {std::pair("binary", &facts.binary), std::pair("debug file", &facts.debug)}) {
    if (!*download) continue;
    text += std::string("; ") + what + ": " + std::string(StateText((*download)->state));
    if (!(*download)->why.empty()) text += " (" + (*download)->why + ")";
  }
  return text;
}

symbol::NamingCounts Total(const SymbolizeFacts& facts) {
  symbol::NamingCounts total;
  for (const TraceFacts& trace : facts.traces) {
    total.frames += trace.counts.frames;
    total.named_before += trace.counts.named_before;
    total.named += trace.counts.named;
    total.inlined += trace.counts.inlined;
    total.jit_named += trace.counts.jit_named;
  }
  return total;
}

std::string Share(uint64_t part, uint64_t whole) {
  return FormatShare(static_cast<int64_t>(part), static_cast<int64_t>(whole));
}

std::string TracesText(const SymbolizeFacts& facts, size_t width, bool color) {
  Table table;
  table.Column("trace", Table::Align::kLeft, true);
  for (const std::string_view header : {"frames", "named before", "now", "inlined", "by maps"}) {
    table.Column(header, Table::Align::kRight);
  }
  table.Column("outcome");
  size_t left_out = 0;
  for (const TraceFacts& trace : facts.traces) {
    if (table.rows() >= kMaxRows) {
      ++left_out;
      continue;
    }
    const symbol::NamingCounts& counts = trace.counts;
    table.Row({trace.name, FormatCount(counts.frames), Share(counts.named_before, counts.frames),
               Share(counts.named, counts.frames), FormatCount(counts.inlined),
               FormatCount(counts.jit_named),
               trace.error ? "left as it was" : (trace.replaced ? "replaced" : "nothing new")});
  }
  std::string text = table.ToText(width, color);
  if (left_out != 0) text += "and " + FormatCount(left_out) + " more\n";
  return text;
}

std::string ModulesText(const SymbolizeFacts& facts, size_t width, bool color) {
  if (facts.modules.empty()) return {};
  Table table;
  table.Column("module").Column("frames", Table::Align::kRight);
  table.Column("build-id").Column("found", Table::Align::kLeft, true);
  for (size_t i = 0; i < std::min(facts.modules.size(), kMaxRows); ++i) {
    const ModuleFacts& row = facts.modules[i];
    const std::string& build_id = row.module.key.build_id;
    table.Row({row.module.name, FormatCount(row.module.frames),
               build_id.empty() ? "-" : build_id.substr(0, 12),
               FoundText(row, facts.kernel_symbols)});
  }
  std::string text = "\n" + table.ToText(width, color);
  if (facts.modules.size() > kMaxRows) {
    text += "and " + FormatCount(facts.modules.size() - kMaxRows) + " more\n";
  }
  return text;
}

void DownloadJson(JsonWriter& json, std::string_view key, const std::optional<Download>& download) {
  if (!download) return;
  json.Key(key).BeginObject().Field("state", StateText(download->state));
  json.Field("bytes", download->bytes).EndObject();
}

void CountsJson(JsonWriter& json, const symbol::NamingCounts& counts) {
  json.Field("frames", counts.frames).Field("named_before", counts.named_before);
  json.Field("named", counts.named).Field("inlined", counts.inlined);
  json.Field("jit_named", counts.jit_named);
}

}  // namespace

std::string SymbolizeText(const SymbolizeFacts& facts, size_t width, bool color) {
  const symbol::NamingCounts total = Total(facts);
  const auto missing = std::count_if(facts.modules.begin(), facts.modules.end(), IsMissing);
  std::string text = TracesText(facts, width, color) + ModulesText(facts, width, color);
  text += "\nnamed " + FormatCount(total.named) + " of " + FormatCount(total.frames) +
          " frames, before " + FormatCount(total.named_before) +
          "; modules missing: " + FormatCount(static_cast<uint64_t>(missing)) + "\n";
  return text;
}

std::string SymbolizeJson(const SymbolizeFacts& facts) {
  JsonWriter json;
  json.BeginObject();
  CountsJson(json, Total(facts));
  json.Key("traces").BeginArray();
  for (const TraceFacts& trace : facts.traces) {
    json.BeginObject().Field("name", trace.name);
    CountsJson(json, trace.counts);
    json.Field("replaced", trace.replaced);
    if (trace.error) json.Field("error", trace.error->ToString());
    json.EndObject();
  }
  json.EndArray().Key("modules").BeginArray();
  for (const ModuleFacts& row : facts.modules) {
    json.BeginObject().Field("name", row.module.name).Field("path", row.module.key.path);
    json.Field("build_id", row.module.key.build_id).Field("frames", row.module.frames);
    json.Field("traces", row.traces).Field("file", row.files.path);
    json.Field("has_names", row.files.names).Field("has_lines", row.files.lines);
    DownloadJson(json, "binary_download", row.binary);
    DownloadJson(json, "debug_download", row.debug);
    json.EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

std::vector<std::string> MissingHints(const SymbolizeFacts& facts) {
  std::vector<std::string> hints;
  const auto kernel =
      std::find_if(facts.modules.begin(), facts.modules.end(),
                   [](const ModuleFacts& row) { return row.module.name == kKernel; });
  if (kernel != facts.modules.end() && !facts.kernel_symbols) {
    hints.push_back("the kernel's names: " + std::string(kWhereKernelNamesAre));
  }
  const auto wanted =
      std::find_if(facts.modules.begin(), facts.modules.end(), [](const ModuleFacts& row) {
        return !row.module.key.build_id.empty() && (row.files.path.empty() || !row.files.names);
      });
  if (wanted == facts.modules.end()) return hints;
  const std::string& build_id = wanted->module.key.build_id;
  if (!facts.asked_servers) {
    hints.emplace_back(
        "from servers: --debuginfod-urls https://debuginfod.elfutils.org/ (or the one of your "
        "distribution)");
  }
  hints.push_back("as a package: 'find-dbgsym-packages " + build_id +
                  "' (Debian, Ubuntu), \"dnf install 'debuginfo(build-id) = " + build_id +
                  "'\" (Fedora), then run this again");
  hints.emplace_back(
      "of your own builds: --debug-dir with the folder that has the unstripped files");
  return hints;
}

}  // namespace culprit::cli

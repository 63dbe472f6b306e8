// SPDX-License-Identifier: Apache-2.0
#include "cli/show_target.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "base/glob.h"
#include "base/parallel.h"
#include "base/shell_word.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "trace/trace_reader.h"

namespace culprit::cli {
namespace {

using trace::ThreadId;

bool IsFolder(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code);
}

void UseFoundInstances(const waitgraph::AutoInstanceOptions& options, ShownTrace& shown) {
  const waitgraph::AutoInstances found = waitgraph::FindInstances(*shown.timelines, options);
  shown.source = InstanceSource::kFound;
  shown.instances = found.instances;
  for (const trace::Instance& instance : found.instances) {
    shown.scenarios.push_back(found.scenarios[instance.scenario.value]);
  }
}

void UseThreads(ShownTrace& shown) {
  shown.source = InstanceSource::kThreads;
  const trace::Dictionary& dictionary = shown.trace->dictionary;
  for (size_t t = 0; t < dictionary.threads().size(); ++t) {
    const auto begins = shown.timelines->begins_ns(ThreadId(t));
    if (begins.empty()) continue;
    const int64_t end_ns = shown.timelines->TileEnd(ThreadId(t), begins.size() - 1);
    shown.instances.push_back(
        {.scenario = {}, .thread = ThreadId(t), .t0_ns = begins.front(), .t1_ns = end_ns});
    shown.scenarios.push_back(dictionary.ThreadLabel(ThreadId(t)));
  }
}

void UseOwnInstances(ShownTrace& shown) {
  shown.instances = shown.trace->instances;
  for (const trace::Instance& instance : shown.instances) {
    shown.scenarios.emplace_back(shown.trace->dictionary.Text(instance.scenario));
  }
}

Result<ShownTrace> Load(const std::string& file, const std::string& name, const std::string& prefix,
                        const InstanceWish& wish) {
  CULPRIT_ASSIGN(trace::Trace trace, trace::ReadTrace(file));
  ShownTrace shown;
  shown.name = name;
  shown.prefix = prefix;
  shown.trace = std::make_unique<trace::Trace>(std::move(trace));
  shown.timelines = std::make_unique<waitgraph::Timelines>(*shown.trace);
  if (!wish.automatic) UseOwnInstances(shown);
  if (shown.instances.empty()) UseFoundInstances(wish.found, shown);
  if (shown.instances.empty()) UseThreads(shown);
  return shown;
}

Result<ShownTrace> LoadFromCorpus(const corpus::Corpus& corpus, const std::string& name,
                                  const InstanceWish& wish) {
  CULPRIT_ASSIGN(const corpus::TraceRow row, corpus.Find(name));
  return Load(corpus.TracePath(row), name, name + ":", wish);
}

bool IsWanted(const std::string& scenario, const ChoiceWish& wish) {
  return wish.scenario.empty() || MatchesGlob(wish.scenario, scenario);
}

void Keep(InstanceChoices& choices, InstanceChoice choice, const ChoiceWish& wish) {
  if (!IsWanted(choice.scenario, wish)) return;
  ++choices.instances;
  choices.rows.push_back(std::move(choice));
}

// Slowest first; names decide between equals, so that the order of traces does
// not matter.
void Cut(InstanceChoices& choices, size_t top) {
  std::sort(choices.rows.begin(), choices.rows.end(),
            [](const InstanceChoice& a, const InstanceChoice& b) {
              return a.dur_ns != b.dur_ns ? a.dur_ns > b.dur_ns : a.name < b.name;
            });
  if (choices.rows.size() > top) choices.rows.resize(top);
}

InstanceChoices ChoicesOf(const ShownTrace& shown, const ChoiceWish& wish) {
  InstanceChoices choices;
  for (size_t i = 0; i < shown.instances.size(); ++i) {
    const trace::Instance& instance = shown.instances[i];
    Keep(choices,
         {.name = shown.prefix + std::to_string(i),
          .scenario = shown.scenarios[i],
          .thread = shown.trace->dictionary.ThreadLabel(instance.thread),
          .begin_ns = instance.t0_ns - shown.trace->metadata.begin_ns,
          .dur_ns = instance.dur_ns(),
          .source = shown.source},
         wish);
  }
  Cut(choices, wish.top);
  return choices;
}

// What the catalog knows needs no trace to be opened.
Status AddFromCatalog(const corpus::Corpus& corpus, const std::vector<corpus::TraceRow>& rows,
                      const ChoiceWish& wish, InstanceChoices& choices) {
  CULPRIT_ASSIGN(const std::vector<corpus::ScenarioRow> scenarios, corpus.Scenarios());
  std::unordered_map<int64_t, int64_t> begins_ns;
  for (const corpus::TraceRow& row : rows) begins_ns[row.id] = row.begin_ns;
  for (const corpus::ScenarioRow& scenario : scenarios) {
    if (!IsWanted(scenario.name, wish)) continue;
    CULPRIT_ASSIGN(const auto instances, corpus.Instances(scenario.name, wish.top));
    for (const corpus::InstanceRow& row : instances) {
      choices.rows.push_back({.name = row.trace_name + ":" + std::to_string(row.index),
                              .scenario = row.scenario,
                              .thread = row.process_name + "/" + row.thread_name + " (" +
                                        std::to_string(row.tid) + ")",
                              .begin_ns = row.t0_ns - begins_ns[row.trace],
                              .dur_ns = row.dur_ns});
    }
    choices.instances += scenario.instances;
  }
  return {};
}

Result<InstanceChoices> CorpusChoices(const std::string& path, const ChoiceWish& wish,
                                      Progress& progress) {
  CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(path));
  CULPRIT_ASSIGN(std::vector<corpus::TraceRow> rows, corpus.List());
  InstanceChoices choices;
  if (!wish.instances.automatic) {
    CULPRIT_TRY(AddFromCatalog(corpus, rows, wish, choices));
    // Traces without instances of their own have to be read.
    std::erase_if(rows, [](const corpus::TraceRow& row) { return row.instances != 0; });
  }
  std::vector<InstanceChoices> found(rows.size());
  progress.Start("finding instances", "traces", rows.size());
  ParallelFor(rows.size(), 0, [&](size_t i) {
    const Result<ShownTrace> shown =
        Load(corpus.TracePath(rows[i]), rows[i].name, rows[i].name + ":", wish.instances);
    if (shown.ok()) found[i] = ChoicesOf(shown.value(), wish);
    progress.Advance();
  });
  progress.Finish();
  for (InstanceChoices& more : found) {
    choices.instances += more.instances;
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(choices.rows));
  }
  Cut(choices, wish.top);
  return choices;
}

Result<size_t> IndexOf(const ShownTrace& shown, const std::string& text) {
  const std::optional<uint64_t> index = ParseUnsigned(text);
  const std::string there = shown.instances.empty()
                                ? "it has no instances"
                                : "its instances are " + shown.prefix + "0 to " + shown.prefix +
                                      std::to_string(shown.instances.size() - 1);
  if (!index) {
    return Error{.message = "'" + text + "' is no instance", .file = shown.name, .hint = there};
  }
  if (*index >= shown.instances.size()) {
    return Error{.message = "has no instance " + text, .file = shown.name, .hint = there};
  }
  return static_cast<size_t>(*index);
}

}  // namespace

std::string InstanceFlagsText(const InstanceWish& wish) {
  std::string text = wish.automatic ? " --auto" : "";
  for (const std::string& glob : wish.found.idle) text += " --idle " + ShellWord(glob);
  for (const std::string& glob : wish.found.not_idle) text += " --not-idle " + ShellWord(glob);
  return text;
}

Result<ShownInstance> FindShownInstance(const std::string& path, const std::string& instance,
                                        const InstanceWish& wish) {
  ShownInstance result;
  std::string index = instance;
  if (IsFolder(path)) {
    const size_t colon = instance.rfind(':');
    if (colon == std::string::npos) {
      return Error{.message = "'" + instance + "' is no instance of a corpus",
                   .file = path,
                   .hint = "it is called TRACE:INDEX; culprit show " + path + " lists the slowest"};
    }
    index = instance.substr(colon + 1);
    CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(path));
    CULPRIT_ASSIGN(result.trace, LoadFromCorpus(corpus, instance.substr(0, colon), wish));
  } else {
    CULPRIT_ASSIGN(result.trace, Load(path, path, "", wish));
  }
  CULPRIT_ASSIGN(result.index, IndexOf(result.trace, index));
  return result;
}

Result<InstanceChoices> SlowestInstances(const std::string& path, const ChoiceWish& wish,
                                         Progress& progress) {
  if (IsFolder(path) && wish.within.empty()) return CorpusChoices(path, wish, progress);
  if (!IsFolder(path)) {
    CULPRIT_ASSIGN(const ShownTrace shown, Load(path, path, "", wish.instances));
    return ChoicesOf(shown, wish);
  }
  CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(path));
  CULPRIT_ASSIGN(const ShownTrace shown, LoadFromCorpus(corpus, wish.within, wish.instances));
  return ChoicesOf(shown, wish);
}

}  // namespace culprit::cli

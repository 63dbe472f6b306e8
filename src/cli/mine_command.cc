// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/gather_flags.h"
#include "cli/mine_facts.h"
#include "stackmine/known_clusters.h"
#include "stackmine/signature_store.h"

namespace culprit::cli {
namespace {

Result<int> RunMine(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  const std::string& path = arguments.operands().front();
  CULPRIT_ASSIGN(const bool wants_run, WantsRun(arguments));
  const auto gather = [&](corpus::GatherReport& report) -> Result<stackmine::Evidence> {
    if (!wants_run) {
      return stackmine::GatherEvidence(path, settings.gather, output.progress(), &report);
    }
    CULPRIT_ASSIGN(scale::RunEvidence found,
                   GatherByRun(path, {.mine = settings.gather.reduce}, settings.gather.loop(),
                               arguments, output));
    return std::move(*found.mine);
  };
  CULPRIT_ASSIGN(const MineFacts facts,
                 GatherMine(path, settings, StorePath(arguments), gather,
                            MinerOf(path, settings.gather.loop(), arguments, output)));
  NoteGathered(facts.gathered, output);
  if (arguments.Has("--json")) {
    output.Print(MineJson(facts));
  } else {
    output.Print(MineText(facts, {.show = arguments.Number("--show"),
                                  .verbose = arguments.Has("--verbose"),
                                  .width = output.width(),
                                  .color = output.color()}));
    if (!facts.result.clusters.empty()) {
      const stackmine::Cluster& first = facts.result.clusters.front();
      if (!first.metrics.examples.empty()) {
        output.Note("next: " + ShowCommand(facts, first.metrics.examples.front()));
      }
      output.Note("next: culprit signatures add --from " + first.id + " " + path + " --name NAME");
    }
  }
  const stackmine::Evidence& evidence = facts.evidence;
  return evidence.traces.empty() && !evidence.unreadable.empty() ? 1 : 0;
}

}  // namespace

bool MineFacts::IsIgnored(size_t cluster) const {
  const stackmine::Signature* signature = SignatureOf(cluster);
  return signature != nullptr && signature->status == stackmine::SignatureStatus::kIgnored;
}

const stackmine::Signature* MineFacts::SignatureOf(size_t cluster) const {
  const uint32_t signature = known[cluster].signature;
  return signature == stackmine::kNoSignature ? nullptr : &signatures[signature];
}

Result<MineFacts> GatherMine(const std::string& path, const MineSettings& settings,
                             const std::string& store, Progress& progress) {
  const auto gather = [&](corpus::GatherReport& report) {
    return stackmine::GatherEvidence(path, settings.gather, progress, &report);
  };
  return GatherMine(path, settings, store, gather, &mine::MineMaximal);
}

Result<MineFacts> GatherMine(const std::string& path, const MineSettings& settings,
                             const std::string& store, const GatherMineEvidence& gather,
                             const stackmine::MaximalMiner& miner) {
  MineFacts facts;
  facts.path = path;
  std::error_code code;
  facts.is_corpus = std::filesystem::is_directory(path, code);
  // First, so that a broken store is told before the long work.
  CULPRIT_ASSIGN(facts.signatures, stackmine::ReadStore(store));
  CULPRIT_ASSIGN(facts.evidence, gather(facts.gathered));
  CULPRIT_ASSIGN(facts.result, stackmine::MineClustersBy(miner, facts.evidence, settings.mine));
  facts.known = stackmine::MatchAndRank(facts.evidence, facts.signatures, settings.mine.clustering,
                                        facts.result);
  return facts;
}

std::string ShowCommand(const MineFacts& facts, uint32_t instance) {
  if (facts.is_corpus) {
    return "culprit show " + facts.path + " " + facts.evidence.InstanceName(instance);
  }
  return "culprit show " + facts.path + " " +
         std::to_string(facts.evidence.instances[instance].index);
}

Command MineCommand() {
  Command command;
  command.name = "mine";
  command.summary = "the few behaviours that cost most time, over all traces: waits and CPU";
  command.operands = "CORPUS|TRACE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"culprit mine fleet", "what the instances of a corpus waited for and ran"},
      {"culprit mine fleet --scenario 'App*' --slower-than 1s", "only slow starts"},
      {"culprit mine fleet --class lock --with 'win32k.sys!*'", "only lock waits in one module"},
      {"culprit mine fleet --rule traces=10%,delay=300ms",
       "what costs 300 ms in a tenth of the traces"},
      {"culprit mine slow.ctrace --sort p95 -v", "one trace, worst cases first, in full"}};
  command.flags = MineFlags();
  command.flags.push_back({.name = "--show",
                           .letter = 'n',
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "clusters of each kind shown in full",
                           .default_text = "5"});
  command.flags.push_back({.name = "--verbose",
                           .letter = 'v',
                           .help = "show the patterns of each cluster and all their variants"});
  command.flags.push_back({.name = "--json", .help = "print JSON with all clusters"});
  command.flags.push_back(StoreFlag());
  for (Flag& flag : MiningEngineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "Follows the waits of every instance to whoever ended them, adds up the stacks that waited "
      "and ran over all traces, finds the call sequences that cost at least lambda, and groups "
      "those that are variants of one behaviour.\n\n"
      "Where a trace marks no instances they are found: the spans between two waits for work. "
      "Costs are as charged to instances; time counts each nanosecond of an instance once. "
      "docs/mine.md explains every number.";
  command.run = &RunMine;
  return command;
}

}  // namespace culprit::cli

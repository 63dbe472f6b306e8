// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands.h"
#include "push/push.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

std::string Plural(uint64_t count, const char* noun) {
  return FormatCount(count) + " " + noun + (count == 1 ? "" : "s");
}

Result<push::PushOptions> OptionsOf(const Arguments& arguments) {
  push::PushOptions options;
  if (!arguments.Has("--anonymize")) return options;
  CULPRIT_ASSIGN(options.key, push::UserKey());
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) == 0) options.hosts.emplace_back(host.data());
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (const char* user = std::getenv(variable)) options.users.emplace_back(user);
  }
  for (const std::string& word : arguments.All("--hide")) options.users.push_back(word);
  return options;
}

std::string OutcomeJson(const push::PushOutcome& outcome) {
  JsonWriter json;
  json.BeginObject().Field("sent", outcome.sent).Field("already_there", outcome.already_there);
  json.Field("bytes", outcome.bytes).Key("failed").BeginArray();
  for (const auto& failure : outcome.failures) {
    json.BeginObject().Field("name", std::string_view(failure.name));
    json.Field("why", std::string_view(failure.error.ToString())).EndObject();
  }
  json.EndArray().Key("replaced").BeginObject();
  for (const auto& [what, count] : outcome.replaced) json.Field(what, count);
  json.EndObject().EndObject();
  return json.Take() + "\n";
}

Result<int> RunPush(const Arguments& arguments, Output& output) {
  const std::string& where = arguments.operands().front();
  const std::vector<std::string> sources(arguments.operands().begin() + 1,
                                         arguments.operands().end());
  push::TargetOptions target_options;
  target_options.token = arguments.Text("--token");
  if (const char* token = std::getenv("CULPRIT_TOKEN");
      target_options.token.empty() && token != nullptr) {
    target_options.token = token;
  }
  target_options.retries = static_cast<uint32_t>(arguments.Number("--retries"));
  target_options.ssh = arguments.Text("--ssh");
  CULPRIT_ASSIGN(const push::PushOptions options, OptionsOf(arguments));
  CULPRIT_TRY(push::CheckSources(sources));
  CULPRIT_ASSIGN(const auto target, push::OpenTarget(where, target_options));
  CULPRIT_ASSIGN(const push::PushOutcome outcome,
                 push::Push(sources, *target, options, output.progress()));
  for (const auto& failure : outcome.failures) {
    output.Warn(report::PlainText(failure.name) + ": " + failure.error.ToString());
    if (!failure.error.hint.empty()) output.Note("  hint: " + failure.error.hint);
  }
  if (arguments.Has("--json")) {
    output.Print(OutcomeJson(outcome));
  } else {
    std::string line = "sent " + Plural(outcome.sent, "trace") + ", " + FormatBytes(outcome.bytes);
    if (outcome.already_there > 0) {
      line += "; " + FormatCount(outcome.already_there) + " already there";
    }
    if (!outcome.failures.empty()) line += "; " + FormatCount(outcome.failures.size()) + " failed";
    output.Print(line + "\n");
    std::string replaced;
    for (const auto& [what, count] : outcome.replaced) {
      replaced += (replaced.empty() ? "" : ", ") + FormatCount(count) + " " + what;
    }
    if (!options.key.empty()) {
      output.Print("replaced: " + (replaced.empty() ? "nothing" : replaced) + "\n");
    }
  }
  return outcome.failures.empty() ? 0 : 1;
}

}  // namespace

Command PushCommand() {
  Command command;
  command.name = "push";
  command.summary = "send traces to another corpus, another machine or a server";
  command.operands = "TARGET CORPUS|TRACE...";
  command.min_operands = 2;
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"culprit push /net/fleet local", "to a corpus on a shared disk"},
      {"culprit push perf@hub:/srv/fleet local", "by ssh and rsync; culprit is on both machines"},
      {"CULPRIT_TOKEN=... culprit push https://hub:7373 local --anonymize",
       "to a culprit serve --uploads, without paths, arguments and names"}};
  command.flags = {
      {.name = "--anonymize", .help = "replace paths, arguments, names of hosts and users first"},
      {.name = "--hide",
       .kind = ValueKind::kText,
       .value = "WORD",
       .help = "with --anonymize: one more word to replace; may be repeated"},
      {.name = "--token",
       .kind = ValueKind::kText,
       .value = "TOKEN",
       .help = "of the server; better in CULPRIT_TOKEN, which others cannot see"},
      {.name = "--ssh",
       .kind = ValueKind::kText,
       .value = "PROGRAM",
       .help = "how HOST:FOLDER is reached; ports and keys stand in ~/.ssh/config",
       .default_text = "ssh"},
      {.name = "--retries",
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "after a cut connection",
       .default_text = "5"},
      {.name = "--json", .help = "print JSON"}};
  command.details =
      "What a target has already is not sent again, what was cut off goes on where it stopped: the "
      "command may be run as often as one likes. A trace counts as sent when the target has "
      "checked it. The exit code is 1 if some could not be sent.";
  command.run = &RunPush;
  return command;
}

}  // namespace culprit::cli

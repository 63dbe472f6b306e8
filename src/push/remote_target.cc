// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/program.h"
#include "base/shell_word.h"
#include "push/target.h"

namespace culprit::push {
namespace {

constexpr std::chrono::hours kLongestCopy{24};
constexpr std::chrono::minutes kLongestCommand{30};
constexpr size_t kShownOfErrors = 400;

std::string LastOf(const std::string& text) {
  std::string last =
      text.size() > kShownOfErrors ? text.substr(text.size() - kShownOfErrors) : text;
  while (!last.empty() && last.back() == '\n') last.pop_back();
  return last;
}

// Files go to FOLDER.incoming under their hash, by rsync, which goes on with what
// was cut off and checks what it wrote; then culprit over there takes them in.
class RemoteTarget : public Target {
 public:
  RemoteTarget(std::string host, std::string folder, TargetOptions options)
      : host_(std::move(host)), folder_(std::move(folder)), options_(std::move(options)) {}

  // What is there already; a corpus that is not there yet is made.
  Status LookThere() {
    CULPRIT_TRY(There({"mkdir", "-p", "--", folder_ + ".incoming"}));
    const Result<std::string> list = There({"culprit", "corpus", "list", folder_, "--json"});
    if (!list.ok()) {
      // A folder that is no corpus yet, or no culprit: the second is told now.
      const Result<std::string> version = There({"culprit", "--version"});
      if (version.ok()) return {};
      return Error{.message = "there is no culprit on " + host_ + " to take traces in",
                   .hint =
                       "install it there, or copy the corpus by other means and run "
                       "'culprit corpus add' there"};
    }
    const auto json = nlohmann::json::parse(list.value(), nullptr, false);
    if (!json.is_object() || !json.contains("traces")) return {};
    for (const auto& trace : json["traces"]) {
      if (trace.is_object() && trace.contains("sha256") && trace["sha256"].is_string()) {
        there_.insert(trace["sha256"].get<std::string>());
      }
    }
    return {};
  }

  Result<Sent> Send(const Parcel& parcel, Progress& progress) override {
    if (there_.count(parcel.sha256) != 0) {
      progress.Advance(parcel.bytes);
      return Sent::kAlreadyThere;
    }
    const std::string file = folder_ + ".incoming/" + parcel.sha256 + ".ctrace";
    const std::vector<std::string> words = {
        options_.rsync, "--partial",  "--inplace", "--protect-args", "--timeout=60",
        "-e",           options_.ssh, "--",        parcel.path,      host_ + ":" + file};
    CULPRIT_ASSIGN(const ProgramOutput copied, Repeat(words));
    if (copied.code != 0) {
      return Error{.message = "rsync to " + host_ + " failed: " + LastOf(copied.err),
                   .file = parcel.path,
                   .hint = "run the same command again: it goes on where it stopped"};
    }
    CULPRIT_TRY(There({"culprit", "corpus", "add", folder_, file, "--name", parcel.name}));
    CULPRIT_TRY(There({"rm", "-f", "--", file}));
    there_.insert(parcel.sha256);
    progress.Advance(parcel.bytes);
    return Sent::kSent;
  }

 private:
  Result<ProgramOutput> Repeat(const std::vector<std::string>& words) const {
    for (uint32_t attempt = 0;; ++attempt) {
      CULPRIT_ASSIGN(ProgramOutput output, RunProgram(words, kLongestCopy));
      if (output.code == 0 || attempt >= options_.retries) return output;
    }
  }

  // ssh gives all words to a shell over there, so each is quoted for it.
  Result<std::string> There(const std::vector<std::string>& command) const {
    std::vector<std::string> words = {options_.ssh, "-o", "BatchMode=yes", "--", host_};
    std::string line;
    for (const std::string& word : command) line += (line.empty() ? "" : " ") + ShellWord(word);
    words.push_back(line);
    CULPRIT_ASSIGN(ProgramOutput output, RunProgram(words, kLongestCommand));
    if (output.code == 0) return std::move(output.out);
    return Error{.message = "'" + line + "' on " + host_ + " failed: " + LastOf(output.err),
                 .hint = "try it by hand: " + options_.ssh + " " + host_ + " " + line};
  }

  const std::string host_;
  const std::string folder_;
  const TargetOptions options_;
  std::set<std::string> there_;
};

}  // namespace

Result<std::unique_ptr<Target>> OpenRemoteTarget(const std::string& host, const std::string& folder,
                                                 const TargetOptions& options) {
  auto target = std::make_unique<RemoteTarget>(host, folder, options);
  CULPRIT_TRY(target->LookThere());
  return std::unique_ptr<Target>(std::move(target));
}

}  // namespace culprit::push

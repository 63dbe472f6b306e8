// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/completion.h"

namespace culprit::cli {
namespace {

Result<int> RunCompletion(const Arguments& arguments, Output& output) {
  const std::string& shell = arguments.operands().front();
  if (shell == "bash") {
    output.Print(BashCompletion(Commands()));
  } else if (shell == "zsh") {
    output.Print(ZshCompletion(Commands()));
  } else if (shell == "fish") {
    output.Print(FishCompletion(Commands()));
  } else {
    return Error{.message = "there is no completion for the shell '" + shell + "'",
                 .hint = "the shells are bash, zsh and fish"};
  }
  return 0;
}

}  // namespace

Command CompletionCommand() {
  return {.name = "completion",
          .summary = "print a script that completes culprit's commands and flags",
          .operands = "bash|zsh|fish",
          .min_operands = 1,
          .max_operands = 1,
          .examples = {{"source <(culprit completion bash)", "in this shell only"},
                       {"culprit completion fish > ~/.config/fish/completions/culprit.fish",
                        "in every new fish"}},
          .flags = {},
          .details =
              "bash: write the script to /etc/bash_completion.d/culprit or to "
              "~/.local/share/bash-completion/completions/culprit.\n\n"
              "zsh: write the script as _culprit into a folder of $fpath, before compinit runs.",
          .run = RunCompletion};
}

}  // namespace culprit::cli

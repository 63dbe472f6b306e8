// SPDX-License-Identifier: Apache-2.0
//
// The flags that say what to mine, shared by `mine` and the `signatures`
// commands that mine: the area of interest, lambda, budgets, clustering.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "stackmine/clusters.h"
#include "stackmine/gather.h"

namespace culprit::cli {

struct MineSettings {
  stackmine::GatherOptions gather;
  stackmine::MineOptions mine;
};

std::vector<Flag> MineFlags();
Flag StoreFlag();
// What their values ask for; an Error where they do not make sense together.
Result<MineSettings> ReadMineFlags(const Arguments& arguments);
// --store, or the default; empty if there is none.
std::string StorePath(const Arguments& arguments);
// "2GB", "512MB", "1000000"; decimal units.
std::optional<uint64_t> ParseBytes(std::string_view text);

}  // namespace culprit::cli

// SPDX-License-Identifier: Apache-2.0
//
// AnonymizeTrace: a trace without what tells who and where: folders of paths,
// arguments of processes, cgroups, names of machines and users become pseudonyms
// (pseudonyms.h); names of modules, functions, scenarios, processes and threads
// stay, but for the words among them that name a machine or a user. Times,
// stacks and counts are untouched, so every analysis finds the same. Block by
// block: memory is two dictionaries and one block.
#pragma once

#include <string>

#include "base/result.h"
#include "push/pseudonyms.h"

namespace culprit::push {

// Writes `to`, which must not exist. Blocks that cannot be read are left out; the
// property anonymized.damaged_blocks of the new trace counts them.
Status AnonymizeTrace(const std::string& from, const std::string& to, Pseudonyms& pseudonyms);

}  // namespace culprit::push

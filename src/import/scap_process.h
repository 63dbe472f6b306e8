// SPDX-License-Identifier: Apache-2.0
//
// The process list of a .scap file: the threads that were alive when the
// capture began. Nine versions exist; each adds fields to the one before, the
// last also the length of each entry, so that newer fields can be skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "import/scap_block.h"

namespace culprit::import_ {

// Views point into the block.
struct ScapThread {
  int64_t tid = -1;
  int64_t pid = -1;
  int64_t parent = -1;
  std::string_view name;
  std::string_view program;
  std::string_view arguments;  // each ends in a NUL
  std::string_view cgroups;    // "controller=path", each ends in a NUL
};

// Calls `use` for every thread. False: an entry did not fit; those before it
// were used.
bool ReadScapThreads(const ScapBlock& block, const std::function<void(const ScapThread&)>& use);

// "nginx -g daemon off;"
std::string ScapCommandLine(std::string_view program, std::string_view arguments);
// The most specific path of all controllers: what tells a container.
std::string_view ScapCgroup(std::string_view cgroups);

}  // namespace culprit::import_

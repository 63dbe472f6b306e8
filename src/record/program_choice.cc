// SPDX-License-Identifier: Apache-2.0
#include "record/program_choice.h"

#include <string>
#include <string_view>

#include "record/process_scan.h"

namespace culprit::record {
namespace {

// The kernel's types name the functions that programs may call.
constexpr const char* kKernelTypes = "/sys/kernel/btf/vmlinux";
constexpr std::string_view kDirectRead = "bpf_rdonly_cast";

bool HasDirectReads() {
  return ReadKernelFile(kKernelTypes).find(kDirectRead) != std::string::npos;
}

}  // namespace

std::vector<ProgramChoice> ProgramChoices(bool marks, bool direct_reads) {
  std::vector<MarkProgram> mark_programs = {MarkProgram::kNone};
  if (marks) {
    mark_programs = {MarkProgram::kFunction, MarkProgram::kSystemCall, MarkProgram::kNone};
  }
  std::vector<ProgramChoice> choices;
  for (const bool direct : {true, false}) {
    if (direct && !(direct_reads && HasDirectReads())) continue;
    for (const MarkProgram program : mark_programs) {
      choices.push_back({.marks = program, .direct_reads = direct});
    }
  }
  return choices;
}

}  // namespace culprit::record

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
constexpr std::string_view kResume = "btf_trace_sched_exit_tp";

bool Has(const std::string& types, std::string_view name) {
  return types.find(name) != std::string::npos;
}

}  // namespace

std::vector<ProgramChoice> ProgramChoices(const ProgramWishes& wishes) {
  std::vector<MarkProgram> mark_programs = {MarkProgram::kNone};
  if (wishes.marks) {
    mark_programs = {MarkProgram::kFunction, MarkProgram::kSystemCall, MarkProgram::kNone};
  }
  std::vector<ProgramChoice> choices;
  const std::string types = ReadKernelFile(kKernelTypes);
  for (const bool resumes : {true, false}) {
    if (resumes && !(wishes.resumes && Has(types, kResume))) continue;
    for (const bool direct : {true, false}) {
      if (direct && !(wishes.direct_reads && Has(types, kDirectRead))) continue;
      for (const MarkProgram program : mark_programs) {
        choices.push_back({.marks = program, .direct_reads = direct, .resumes = resumes});
      }
    }
  }
  return choices;
}

}  // namespace culprit::record

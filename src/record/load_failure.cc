// SPDX-License-Identifier: Apache-2.0
#include "record/load_failure.h"

#include <errno.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "import/text_scan.h"

namespace culprit::record {
namespace {

constexpr std::string_view kLogBegin = "-- BEGIN PROG LOAD LOG --";
constexpr std::string_view kLogEnd = "-- END PROG LOAD LOG --";

constexpr int kCapSysAdmin = 21;
constexpr int kCapPerfmon = 38;
constexpr int kCapBpf = 39;

// "libbpf: prog 'on_switch': BPF program load failed: ..."
std::string_view ProgramOf(std::string_view said) {
  constexpr std::string_view kBefore = "prog '";
  const size_t begin = said.rfind(kBefore, said.find(kLogBegin));
  if (begin == std::string_view::npos) return {};
  said.remove_prefix(begin + kBefore.size());
  return said.substr(0, said.find('\''));
}

// The verifier ends with what it did not like, and then with figures.
std::string_view ReasonOf(std::string_view said) {
  said = said.substr(said.find(kLogBegin) + kLogBegin.size());
  said = said.substr(0, said.find(kLogEnd));
  std::string_view reason;
  while (!said.empty()) {
    const size_t end = std::min(said.find('\n'), said.size());
    const std::string_view line = import_::Trim(said.substr(0, end));
    said.remove_prefix(std::min(end + 1, said.size()));
    const bool figures = line.starts_with("processed ") || line.starts_with("verification time") ||
                         line.starts_with("stack depth") || line.starts_with("libbpf:") ||
                         line.starts_with("max_states");
    if (!line.empty() && !figures) reason = line;
  }
  return reason;
}

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

bool MayLoadPrograms(std::string_view status) {
  constexpr std::string_view kKey = "CapEff:";
  const size_t at = status.find(kKey);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = import_::Trim(FirstLine(status.substr(at + kKey.size())));
  uint64_t bits = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  const auto has = [&](int capability) { return (bits >> capability & 1) != 0; };
  return has(kCapSysAdmin) || (has(kCapBpf) && has(kCapPerfmon));
}

Error ExplainLoadFailure(const LoadFacts& facts) {
  const int code = facts.code < 0 ? -facts.code : facts.code;
  if (facts.said.find(kLogBegin) != std::string_view::npos) {
    return {.message = "this kernel's verifier does not accept the recorder's program " +
                       std::string(ProgramOf(facts.said)) + ": " +
                       std::string(ReasonOf(facts.said)),
            .hint =
                "--tier perf records without kernel programs; please report the message with "
                "the output of uname -a"};
  }
  Error error{.message =
                  "cannot load the recorder's kernel programs: " + std::string(strerror(code))};
  const bool forbidden = code == EPERM || code == EACCES;
  if (forbidden && !facts.may_load) {
    error.hint = "run as root, or give the program CAP_BPF and CAP_PERFMON";
  } else if (forbidden) {
    error.hint =
        "the capabilities are there, but this kernel or container forbids it (lockdown, seccomp); "
        "--tier perf needs less";
  } else if (!facts.has_btf) {
    error.hint = "this kernel has no BTF (/sys/kernel/btf/vmlinux)";
  } else {
    error.hint = std::string(FirstLine(facts.said));
  }
  return error;
}

}  // namespace culprit::record

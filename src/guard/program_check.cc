// SPDX-License-Identifier: Apache-2.0
#include "guard/program_check.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "symbol/elf_file.h"

namespace culprit::guard {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr std::string_view kMachineName = "x86-64";
#else
constexpr uint16_t kMachine = EM_AARCH64;
constexpr std::string_view kMachineName = "arm64";
#endif
constexpr int kMaxScripts = 4;

Error CannotGuard(const std::string& path, std::string why, std::string hint = {}) {
  return {.message = "cannot be guarded: " + std::move(why), .file = path, .hint = std::move(hint)};
}

// Links are not followed.
Result<std::string> FindInPath(const std::string& command) {
  std::error_code code;
  if (command.find('/') != std::string::npos) {
    if (fs::is_regular_file(command, code)) return fs::absolute(command, code).string();
    return Error{.message = "no such program", .file = command};
  }
  const char* variable = getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + command;
    if (access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path, code)) {
      return path;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Error{.message = "there is no program '" + command + "' in PATH"};
}

// "#!/usr/bin/env python3" -> "python3"; empty: no script.
std::string InterpreterOf(std::string_view head) {
  if (!head.starts_with("#!")) return "";
  head = head.substr(2, head.find('\n') - 2);
  std::vector<std::string> words;
  std::string word;
  for (const char c : head) {
    if (c != ' ' && c != '\t') {
      word.push_back(c);
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  if (words.empty()) return "";
  const bool by_env = BaseName(words[0]) == "env" && words.size() > 1;
  return by_env ? words[1] : words[0];
}

// Where the loader looks at LD_PRELOAD with mistrust (AT_SECURE).
Status CheckRights(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return ErrnoError("look at", path);
  const bool as_other = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  const bool as_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  if (as_other || as_group) {
    return CannotGuard(path, "it is setuid or setgid, for which the loader ignores LD_PRELOAD",
                       "start it as the user it becomes, or attach to it as root");
  }
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return CannotGuard(path, "it has file capabilities, for which the loader ignores LD_PRELOAD",
                       "attach to it as root");
  }
  return {};
}

Status CheckElf(const std::string& path, const std::string& head) {
  Elf64_Ehdr header = {};
  if (head.size() < sizeof(header) || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) {
    return CannotGuard(path, "it is neither an ELF program nor a script");
  }
  if (head[EI_CLASS] != ELFCLASS64) return CannotGuard(path, "it is a 32-bit program");
  std::memcpy(&header, head.data(), sizeof(header));
  if (header.e_machine != kMachine) {
    return CannotGuard(path, "it is not made for " + std::string(kMachineName));
  }
  std::string interpreter;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    const uint64_t at = header.e_phoff + i * sizeof(segment);
    if (at > head.size() || sizeof(segment) > head.size() - at) break;
    std::memcpy(&segment, head.data() + at, sizeof(segment));
    if (segment.p_type != PT_INTERP || segment.p_offset >= head.size()) continue;
    interpreter = head.c_str() + segment.p_offset;
  }
  if (interpreter.empty()) {
    return CannotGuard(path, "it is a static program: nothing can be loaded into it");
  }
  if (interpreter.find("ld-linux") == std::string::npos) {
    return CannotGuard(path, "its loader " + interpreter + " is not that of the GNU C library");
  }
  return {};
}

Status CheckLanguage(const symbol::ElfFile& file) {
  if (file.FindSection(".go.buildinfo") != nullptr ||
      file.FindSection(".note.go.buildid") != nullptr) {
    return CannotGuard(file.path(),
                       "it is a Go program: its stacks move and its waits bypass the C library");
  }
  return {};
}

}  // namespace

Result<ProgramFacts> CheckProgram(const std::string& command) {
  constexpr size_t kHeadBytes = 64 * 1024;
  ProgramFacts facts;
  const auto find = [&](const std::string& wanted) -> Status {
    CULPRIT_ASSIGN(facts.name, FindInPath(wanted));
    std::error_code code;
    facts.path = fs::canonical(facts.name, code).string();
    return {};
  };
  CULPRIT_TRY(find(command));
  for (int step = 0; step < kMaxScripts; ++step) {
    CULPRIT_TRY(CheckRights(facts.path));
    CULPRIT_ASSIGN(const InputFile file, InputFile::Open(facts.path));
    std::string head;
    CULPRIT_TRY(file.ReadAt(0, kHeadBytes, head));
    const std::string interpreter = InterpreterOf(head);
    if (!interpreter.empty()) {
      facts.is_script = true;
      CULPRIT_TRY(find(interpreter));
      continue;
    }
    CULPRIT_TRY(CheckElf(facts.path, head));
    CULPRIT_ASSIGN(const symbol::ElfFile elf, symbol::ElfFile::Open(facts.path));
    CULPRIT_TRY(CheckLanguage(elf));
    facts.build_id = elf.build_id();
    return facts;
  }
  return CannotGuard(facts.path, "its interpreter is a script, and that one's too");
}

Status CheckBuildIds(const Profile& profile, const ProgramFacts& program) {
  const std::string_view name = BaseName(program.path);
  const ProfileModule* same_name = nullptr;
  for (const ProfileModule& module : profile.modules) {
    if (symbol::SameBuildId(module.build_id, program.build_id)) return {};
    if (BaseName(module.path) == name) same_name = &module;
  }
  if (program.is_script) return {};  // what it starts is checked by the runtime
  const std::string own = program.build_id.empty() ? "none" : program.build_id;
  if (same_name != nullptr) {
    return Error{.message = "is another build than the profile's: build-id " + own +
                            ", the profile has " + same_name->build_id,
                 .file = program.path,
                 .hint = "train it anew: culprit guard train -- " + program.path};
  }
  return Error{.message = "is not the program that was trained (" + profile.program +
                          "): no module of the profile has its build-id " + own,
               .file = program.path,
               .hint = "culprit guard show lists the profile's modules"};
}

}  // namespace culprit::guard

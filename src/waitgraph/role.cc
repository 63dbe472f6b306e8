// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/role.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace culprit::waitgraph {
namespace {

using trace::Dictionary;
using trace::ThreadId;
using trace::ThreadKind;

// Threads whose loop is only guessed share a role if they wait at one place;
// those of which no frame is known, if they have one name.
struct RoleKey {
  std::string image;
  FunctionId loop = kNoFunction;
  PathId guessed = kRootPath;
  std::string thread_name;
  bool kernel_thread = false;

  bool operator<(const RoleKey& other) const {
    return std::tie(image, loop, guessed, thread_name, kernel_thread) <
           std::tie(other.image, other.loop, other.guessed, other.thread_name, other.kernel_thread);
  }
};

struct Member {
  ThreadId thread;
  Loop loop;
};

RoleVerdict Judge(const FunctionPaths& paths, const std::vector<ThreadActivity>& activity,
                  const RoleKey& key, const std::vector<Member>& members) {
  RoleVerdict role;
  role.image = key.image;
  role.certain = members.front().loop.certain;
  role.kernel_thread = key.kernel_thread;
  std::vector<const Activity*> parts;
  std::vector<PathId> loops;
  for (const Member& member : members) {
    role.threads.push_back(member.thread);
    const ThreadActivity& own = activity[member.thread.value];
    parts.push_back(&own.activity);
    loops.push_back(member.loop.path);
    for (size_t i = 0; i < std::size(role.by_evidence); ++i) {
      role.by_evidence[i] += own.by_evidence[i];
    }
  }
  std::sort(loops.begin(), loops.end());
  loops.erase(std::unique(loops.begin(), loops.end()), loops.end());
  role.loop =
      JudgeLoop(paths, ActivityTree(paths, Join(parts)), std::move(loops), key.kernel_thread);
  return role;
}

bool Holds(const std::vector<PathId>& sorted, PathId path) {
  return std::binary_search(sorted.begin(), sorted.end(), path);
}

// Whether all loops of `part` are those of `whole`, or lie inside branches that
// it has judged.
bool IsPartOf(const FunctionPaths& paths, const RoleVerdict& part, const RoleVerdict& whole) {
  if (whole.loop.idle == kNoFunction) return false;
  return std::all_of(part.loop.loops.begin(), part.loop.loops.end(), [&](PathId path) {
    if (path != kRootPath && Holds(whole.loop.loops, path)) return true;
    for (; path != kRootPath; path = paths.caller(path)) {
      if (!Holds(whole.loop.loops, paths.caller(path))) continue;
      if (Holds(whole.loop.idle_paths, path) || Holds(whole.loop.work_paths, path)) return true;
    }
    return false;
  });
}

uint32_t DepthOf(const FunctionPaths& paths, const RoleVerdict& role) {
  uint32_t depth = UINT32_MAX;
  for (const PathId loop : role.loop.loops) depth = std::min(depth, paths.depth(loop));
  return depth;
}

void Absorb(RoleVerdict& whole, const RoleVerdict& part) {
  whole.threads.insert(whole.threads.end(), part.threads.begin(), part.threads.end());
  std::sort(whole.threads.begin(), whole.threads.end());
  for (size_t i = 0; i < std::size(whole.by_evidence); ++i) {
    whole.by_evidence[i] += part.by_evidence[i];
  }
}

// Shallow loops first, so that a part of a part ends up in the whole.
std::vector<RoleVerdict> MergeParts(const FunctionPaths& paths, std::vector<RoleVerdict> roles) {
  std::stable_sort(roles.begin(), roles.end(), [&](const RoleVerdict& a, const RoleVerdict& b) {
    if (a.image != b.image) return a.image < b.image;
    const uint32_t depth_a = DepthOf(paths, a);
    const uint32_t depth_b = DepthOf(paths, b);
    return depth_a != depth_b ? depth_a < depth_b : a.certain > b.certain;
  });
  std::vector<RoleVerdict> merged;
  for (RoleVerdict& role : roles) {
    const auto first_of_image = std::partition_point(
        merged.begin(), merged.end(), [&](const RoleVerdict& m) { return m.image < role.image; });
    const auto whole = std::find_if(first_of_image, merged.end(),
                                    [&](const RoleVerdict& m) { return IsPartOf(paths, role, m); });
    if (whole == merged.end()) {
      merged.push_back(std::move(role));
    } else {
      Absorb(*whole, role);
    }
  }
  return merged;
}

// Frames that every thread of a system starts with say nothing about its role.
bool IsStart(std::string_view function) {
  constexpr std::array<std::string_view, 24> kStarts = {"_start",
                                                        "__libc_start_main",
                                                        "__libc_start_call_main",
                                                        "__libc_start_main_impl",
                                                        "__libc_init",
                                                        "start_thread",
                                                        "thread_start",
                                                        "clone",
                                                        "__clone",
                                                        "clone3",
                                                        "__clone3",
                                                        "__GI___clone",
                                                        "__start_thread",
                                                        "__pthread_start",
                                                        "BaseThreadInitThunk",
                                                        "RtlUserThreadStart",
                                                        "__RtlUserThreadStart",
                                                        "_RtlUserThreadStart",
                                                        "ret_from_fork",
                                                        "ret_from_fork_asm",
                                                        "kthread",
                                                        "execute_native_thread_routine",
                                                        "kernel_thread_helper",
                                                        "[truncated]"};
  return std::find(kStarts.begin(), kStarts.end(), function) != kStarts.end();
}

// A name that tells something about a thread: not of the system's code, unless
// the thread is the system's.
std::string TellingName(const FunctionPaths& paths, PathId path, bool kernel_thread) {
  if (path == kRootPath) return {};
  const FunctionPaths::Function& function = paths.at(paths.function(path));
  if (!function.named || (!kernel_thread && function.system)) return {};
  std::string name = paths.ShortName(paths.function(path));
  return IsStart(name) ? std::string() : name;
}

// The function a reader would call the loop: the loop itself if it has a telling
// name, else the nearest caller that has.
std::string LoopName(const FunctionPaths& paths, const RoleVerdict& role, bool kernel_thread) {
  for (PathId path = role.loop.loops.front(); path != kRootPath; path = paths.caller(path)) {
    std::string name = TellingName(paths, path, kernel_thread);
    if (!name.empty()) return name;
  }
  return {};
}

// How many roles of an image go through each function.
using Crowds = std::unordered_map<FunctionId, size_t>;

Crowds CountRoles(const FunctionPaths& paths, std::span<const RoleVerdict> of_image) {
  Crowds crowds;
  for (const RoleVerdict& role : of_image) {
    std::unordered_set<FunctionId> seen;
    for (PathId path = role.loop.loops.front(); path != kRootPath; path = paths.caller(path)) {
      if (seen.insert(paths.function(path)).second) ++crowds[paths.function(path)];
    }
  }
  return crowds;
}

// The first function from the start that no other role of the image goes
// through: it says what sets this role apart where the loop is only guessed.
std::string PartingName(const FunctionPaths& paths, const RoleVerdict& role, const Crowds& crowds) {
  std::string name;
  for (PathId path = role.loop.loops.front(); path != kRootPath; path = paths.caller(path)) {
    if (crowds.at(paths.function(path)) > 1) continue;
    std::string here = TellingName(paths, path, role.kernel_thread);
    if (!here.empty()) name = std::move(here);
  }
  return name;
}

// The name most threads have that is not their process's; ties to the first.
std::string ThreadName(const Dictionary& dictionary, const RoleVerdict& role) {
  std::map<std::string_view, size_t> counts;
  for (const ThreadId thread : role.threads) {
    ++counts[WithoutNumber(dictionary.Text(dictionary.threads()[thread.value].name))];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end() || most->first == role.image) return {};
  return std::string(most->first);
}

bool IsKernelThread(const Dictionary& dictionary, const FunctionPaths& paths, ThreadId thread,
                    PathId loop) {
  if (dictionary.threads()[thread.value].kind == ThreadKind::kKernel) return true;
  PathId first = loop;
  while (first != kRootPath && paths.caller(first) != kRootPath) first = paths.caller(first);
  if (first == kRootPath || !paths.KernelOnly(first)) return false;
  return IsStart(paths.ShortName(paths.function(first)));
}

void NameRoles(const Dictionary& dictionary, const FunctionPaths& paths,
               std::vector<RoleVerdict>& roles) {
  for (auto begin = roles.begin(); begin != roles.end();) {
    const auto end = std::find_if(begin, roles.end(),
                                  [&](const RoleVerdict& r) { return r.image != begin->image; });
    const Crowds crowds = CountRoles(paths, {begin, end});
    for (auto role = begin; role != end; ++role) {
      if (!role->certain && end - begin > 1) role->name = PartingName(paths, *role, crowds);
      if (role->name.empty()) role->name = LoopName(paths, *role, role->kernel_thread);
      const std::string thread_name = ThreadName(dictionary, *role);
      if (!thread_name.empty() && (role->name.empty() || role->name == "main")) {
        role->name = thread_name;
      }
    }
    begin = end;
  }
}

// Threads by image and loop.
class Grouper {
 public:
  Grouper(const Dictionary& dictionary, const FunctionPaths& paths,
          const std::vector<ThreadActivity>& activity)
      : dictionary_(dictionary), paths_(paths), activity_(activity) {}

  std::vector<RoleVerdict> Group(const std::vector<ThreadId>& threads, LoopSearch search) const {
    std::map<RoleKey, std::vector<Member>> members;
    for (const ThreadId thread : threads) {
      const ActivityTree tree(paths_, activity_[thread.value].activity);
      const Loop loop = FindLoop(paths_, tree, search);
      members[KeyOf(thread, loop)].push_back({thread, loop});
    }
    std::vector<RoleVerdict> roles;
    for (const auto& [key, list] : members) roles.push_back(Judge(paths_, activity_, key, list));
    return roles;
  }

 private:
  RoleKey KeyOf(ThreadId thread, const Loop& loop) const {
    RoleKey key;
    key.kernel_thread = IsKernelThread(dictionary_, paths_, thread, loop.path);
    key.image = ImageOf(dictionary_, thread, key.kernel_thread);
    key.loop = paths_.function(loop.path);
    if (!loop.certain) key.guessed = loop.path;
    if (loop.path == kRootPath) {
      key.thread_name = WithoutNumber(dictionary_.Text(dictionary_.threads()[thread.value].name));
    }
    return key;
  }

  const Dictionary& dictionary_;
  const FunctionPaths& paths_;
  const std::vector<ThreadActivity>& activity_;
};

}  // namespace

std::string_view WithoutNumber(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash != std::string_view::npos && slash != 0 && name.find('/', slash + 1) == name.npos) {
    name = name.substr(0, slash);
  }
  size_t end = name.size();
  bool number = false;
  while (end > 1) {
    const char c = name[end - 1];
    const bool digit = c >= '0' && c <= '9';
    if (!digit && c != ':' && c != '_' && c != '-' && c != '#' && c != '.') break;
    number = number || digit;
    --end;
  }
  return number ? name.substr(0, end) : name;
}

std::string ImageOf(const Dictionary& dictionary, ThreadId id, bool kernel_thread) {
  const trace::Thread& thread = dictionary.threads()[id.value];
  if (kernel_thread) return std::string(WithoutNumber(dictionary.Text(thread.name)));
  if (thread.process.valid()) {
    const std::string_view name =
        dictionary.Text(dictionary.processes()[thread.process.value].name);
    if (!name.empty()) return std::string(name);
  }
  return std::string(dictionary.Text(thread.name));
}

bool RoleVerdict::IsIdle(const FunctionPaths& paths, PathId path) const {
  for (; path != kRootPath; path = paths.caller(path)) {
    if (Holds(loop.idle_paths, path)) return true;
  }
  return false;
}

std::vector<RoleVerdict> FindRoles(const Dictionary& dictionary, const FunctionPaths& paths,
                                   const std::vector<ThreadActivity>& activity,
                                   const std::vector<ThreadId>& threads) {
  const Grouper grouper(dictionary, paths, activity);
  std::vector<RoleVerdict> roles;
  for (RoleVerdict& role : grouper.Group(threads, LoopSearch::kStrict)) {
    if (role.loop.idle != kNoFunction) {
      roles.push_back(std::move(role));
      continue;
    }
    std::vector<RoleVerdict> again = grouper.Group(role.threads, LoopSearch::kLax);
    const bool idles = std::any_of(again.begin(), again.end(),
                                   [](const RoleVerdict& r) { return r.loop.idle != kNoFunction; });
    if (!idles) {
      roles.push_back(std::move(role));
      continue;
    }
    for (RoleVerdict& each : again) roles.push_back(std::move(each));
  }
  roles = MergeParts(paths, std::move(roles));
  NameRoles(dictionary, paths, roles);
  return roles;
}

std::string ScenarioOf(const RoleVerdict& role) {
  const std::string image = role.image.empty() ? "[unnamed]" : role.image;
  return role.name.empty() || role.name == image ? image : image + ": " + role.name;
}

}  // namespace culprit::waitgraph

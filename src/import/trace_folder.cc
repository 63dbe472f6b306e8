// SPDX-License-Identifier: Apache-2.0
#include "import/trace_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxDepth = 64;  // of folders; deeper ones are not entered

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool Hidden(std::string_view path) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.starts_with('.') && part != "." && part != "..") return true;
    begin = end + 1;
  }
  return false;
}

struct Roots {
  std::set<std::string, std::less<>> flat;  // with the files beside their mark
  std::set<std::string, std::less<>> deep;  // with all that is below
};

Roots FindRoots(const std::vector<std::string>& paths) {
  const std::set<std::string_view> known(paths.begin(), paths.end());
  Roots roots;
  for (const std::string_view path : paths) {
    const std::string_view base = BaseName(path);
    const std::string_view folder = FolderOf(path);
    const auto beside = [&](std::string_view name) {
      return known.contains(std::string(folder) + (folder.empty() ? "" : "/") + std::string(name));
    };
    if (base == "metadata" || (base == "task.txt" && beside("info")) ||
        (base == "data.0" && beside("data"))) {
      roots.flat.emplace(folder);
    }
    const std::string_view above = BaseName(folder);
    if (base == "header_page" && (above == "formats" || above == "events")) {
      roots.deep.emplace(FolderOf(folder));
    }
  }
  return roots;
}

// The outermost root that has all of `path`, if any.
const std::string* DeepRoot(const Roots& roots, std::string_view path) {
  const std::string* found = nullptr;
  if (roots.deep.empty()) return found;
  std::string_view folder = path;
  do {
    folder = FolderOf(folder);
    const auto it = roots.deep.find(folder);
    if (it != roots.deep.end()) found = &*it;
  } while (!folder.empty());
  return found;
}

}  // namespace

std::vector<FileGroup> GroupFiles(std::vector<std::string> paths) {
  std::erase_if(paths, [](const std::string& path) { return Hidden(path); });
  std::sort(paths.begin(), paths.end());
  const Roots roots = FindRoots(paths);
  std::vector<FileGroup> groups;
  std::map<std::string, size_t, std::less<>> group_of;
  const auto add_to = [&](const std::string& root, const std::string& path) {
    const auto [it, is_new] = group_of.emplace(root, groups.size());
    if (is_new) groups.push_back({.folder = root, .together = true});
    groups[it->second].paths.push_back(path);
  };
  for (const std::string& path : paths) {
    const std::string_view folder = FolderOf(path);
    if (const std::string* deep = DeepRoot(roots, path)) {
      add_to(*deep, path);
    } else if (const auto flat = roots.flat.find(folder); flat != roots.flat.end()) {
      add_to(*flat, path);
    } else if (BaseName(folder) == "index" && roots.flat.contains(FolderOf(folder))) {
      continue;
    } else {
      groups.push_back({.folder = "", .paths = {path}});
    }
  }
  return groups;
}

Result<std::vector<std::string>> FilesBelow(const std::string& folder, size_t max_files) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, code);
  if (code) return Error{.message = "cannot list: " + code.message(), .file = folder};
  std::vector<std::string> files;
  for (const fs::recursive_directory_iterator end; it != end;) {
    if (it.depth() >= static_cast<int>(kMaxDepth)) it.disable_recursion_pending();
    if (it->is_regular_file(code)) {
      if (files.size() >= max_files) {
        return Error{.message = "holds more files than the limit allows", .file = folder};
      }
      files.push_back(it->path().lexically_relative(folder).generic_string());
    }
    it.increment(code);
    if (code) break;
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<std::string>> InputsBelow(const std::string& path, size_t max_files) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) return std::vector<std::string>{path};
  CULPRIT_ASSIGN(std::vector<std::string> files, FilesBelow(path, max_files));
  const std::string prefix = path.ends_with('/') ? path : path + "/";
  std::vector<std::string> inputs;
  for (const FileGroup& group : GroupFiles(std::move(files))) {
    if (group.together) {
      inputs.push_back(group.folder.empty() ? path : prefix + group.folder);
    } else {
      inputs.push_back(prefix + group.paths.front());
    }
  }
  return inputs;
}

}  // namespace culprit::import_

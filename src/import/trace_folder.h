// SPDX-License-Identifier: Apache-2.0
//
// Which files below a folder belong together. A folder with a CTF `metadata`
// file is one trace with all the files beside it (not those of its subfolders:
// index/ holds only what the streams say too); a folder with uftrace's `info`
// and task.txt, or with perf's `data` and data.0, is one trace as well; a folder
// with the kernel's event formats (formats/header_page or events/header_page) is
// one with all that is below it: raw ring-buffer pages. Every other file is an
// input of its own. Hidden files are left out. The same rule serves folders on
// disk and inside archives: it sees nothing but paths. O(n log n) in their
// number.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace culprit::import_ {

struct FileGroup {
  std::string folder;              // "" at the top, or for a single file
  std::vector<std::string> paths;  // as given, in order of name
  bool together = false;           // one trace; else `paths` is one file
};

// Groups in order of their first path. Paths are relative, with '/'.
std::vector<FileGroup> GroupFiles(std::vector<std::string> paths);

// All regular files below `folder`, relative to it, in order of name. Links to
// folders are not followed; what cannot be entered is skipped.
Result<std::vector<std::string>> FilesBelow(const std::string& folder, size_t max_files);

// The inputs that OpenSources(path) would open: `path` itself if it is a file,
// else each file and each trace folder below it. So that a command can open
// them one by one and need not hold all at once.
Result<std::vector<std::string>> InputsBelow(const std::string& path, size_t max_files);

}  // namespace culprit::import_

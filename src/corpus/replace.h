// SPDX-License-Identifier: Apache-2.0
//
// ReplaceTrace: other content for a trace that keeps its name, its labels and
// the time it was added. One transaction: at any moment the name means the
// whole old trace or the whole new one, also when the process is killed; the
// old file goes after the commit, as with Corpus::Remove. Opens the catalog by
// itself, so it may be called while a Corpus is open, from several processes.
#pragma once

#include <string>

#include "base/result.h"
#include "corpus/catalog.h"

namespace culprit::corpus {

// `old` is the row as it was read: if the name means other content by now,
// nothing is changed and that is an Error. So it is if the new content is in
// the corpus under another name. On failure the staged file stays where it is.
Status ReplaceTrace(const std::string& folder, const TraceRow& old, const std::string& staged_path);

}  // namespace culprit::corpus

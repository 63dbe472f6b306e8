// SPDX-License-Identifier: Apache-2.0
//
// The signature store: one JSON file of signatures that lives across corpora. A
// change reads the file, changes it and replaces it whole by renaming, all under
// an exclusive lock of FILE.lock, so two writers at once both take effect and a
// reader sees the old or the new file. Names are unique. A file that is not
// there is an empty store.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "stackmine/signature.h"

namespace culprit::stackmine {

// CULPRIT_SIGNATURES, or culprit/signatures.json in the user's data folder
// (XDG_DATA_HOME, or ~/.local/share). Empty if there is no such folder.
std::string DefaultStorePath();

Result<std::vector<Signature>> ReadStore(const std::string& path);

// Makes folder and file where they do not exist. If `change` gives an Error the
// file stays as it is.
Status ChangeStore(const std::string& path,
                   const std::function<Status(std::vector<Signature>&)>& change);

// The signature of that name; an unknown one is an Error that suggests the
// nearest.
Result<size_t> FindSignature(const std::vector<Signature>& signatures, const std::string& name);

}  // namespace culprit::stackmine

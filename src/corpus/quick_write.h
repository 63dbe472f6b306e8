// SPDX-License-Identifier: Apache-2.0
//
// WriteQuickly: a whole file or none, for what can be made again. It is written under
// another name and renamed, so a reader never sees a part, and a process that is
// killed leaves PATH as it was. Without fsync, which would cost more than making many
// a summary: what a crash of the machine cuts short must be found out by its reader.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::corpus {

Status WriteQuickly(const std::string& path, std::string_view bytes);

}  // namespace culprit::corpus

// SPDX-License-Identifier: Apache-2.0
#include "export/target.h"

namespace culprit::export_ {

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = {
      {.name = "json", .summary = "everything, as one JSON document", .to_text = ExportJson},
      {.name = "folded",
       .summary = "time by stack, for flame graphs: frame;frame;frame NANOSECONDS",
       .to_text = ExportFolded},
      {.name = "sqlite", .summary = "everything, as an SQLite database", .to_file = ExportSqlite},
  };
  return targets;
}

const Target* FindTarget(std::string_view name) {
  for (const Target& target : Targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace culprit::export_

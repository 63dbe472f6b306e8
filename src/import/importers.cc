// SPDX-License-Identifier: Apache-2.0
#include "import/importers.h"

namespace culprit::import_ {

const std::vector<Importer>& Importers() {
  // Formats with a signature come before those that are only recognised by the
  // look of their lines; folded stacks, which look like least, are last.
  static const std::vector<Importer> table = {
      PerfDataImporter(),   TraceDatImporter(),   PerfettoImporter(), CtfImporter(),
      EtlImporter(),        RingBufferImporter(), PprofImporter(),    PerfScriptImporter(),
      FtraceTextImporter(), StraceImporter(),     ScapImporter(),     UftraceImporter(),
      JfrImporter(),        XperfCsvImporter(),   FoldedImporter(),
  };
  return table;
}

}  // namespace culprit::import_

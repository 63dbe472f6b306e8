// SPDX-License-Identifier: Apache-2.0
//
// The makers of every importer, one a format. importers.cc puts them into the
// one table Importers() of importer.h; a new format is a line here and a line
// there. The order of the table is the priority among equally sure formats.
#pragma once

#include "import/importer.h"

namespace culprit::import_ {

Importer PerfDataImporter();
Importer PerfScriptImporter();
Importer FoldedImporter();
Importer FtraceTextImporter();
Importer StraceImporter();
Importer PprofImporter();
Importer CtfImporter();
Importer TraceDatImporter();
Importer RingBufferImporter();
Importer PerfettoImporter();
Importer EtlImporter();
Importer XperfCsvImporter();
Importer ScapImporter();
Importer UftraceImporter();
Importer JfrImporter();

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
//
// VisitEtlFacts: switches, wakings and samples of all buffers in order of time.
// A buffer is read when the time it begins at has come and dropped when its last
// event is told, so that memory is what was recorded at one time: about a buffer
// a CPU, kMaxOpenEtlBytes at most. Beyond that buffers are opened later than they
// should, and whoever takes their events finds them out of order. Events of one
// time come in the order of the file.
#pragma once

#include <functional>
#include <vector>

#include "import/etl_survey.h"

namespace culprit::import_ {

inline constexpr size_t kMaxOpenEtlBytes = size_t{256} << 20;

Status VisitEtlFacts(const Bytes& bytes, const EtlHeader& header,
                     const std::vector<EtlBuffer>& buffers, const std::vector<EtlSpan>& spans,
                     const std::function<Status(const EtlEvent&, uint64_t offset)>& visitor);

}  // namespace culprit::import_

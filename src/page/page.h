// SPDX-License-Identifier: Apache-2.0
//
// The page: one HTML document with the script and style sheet that web/ builds.
// As a report file it also holds the parts, each compressed in a block of its
// own that the page opens when it is looked at, so that it opens from disk,
// asks nothing of any network, and paints before its data is unpacked. As a
// served page it fetches the parts from where it came.
//
// The document carries a content security policy that admits this very script
// and style sheet by their hashes and nothing else; parts are base64, so no name
// in a trace can become markup. Same parts, same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::page {

struct Bundle {
  std::string_view script;
  std::string_view style;
};

// What was built into this program; an Error that says how to get it where
// the build had none.
Result<Bundle> FindBundle();

struct PagePart {
  std::string_view name;  // letters, digits, '-', '.', '_'
  std::string_view json;
};

std::string MakeReport(const Bundle& bundle, std::string_view title,
                       const std::vector<PagePart>& parts);
std::string MakeServedPage(const Bundle& bundle);
// Whether a file that begins like this is a page of ours.
bool IsReport(std::string_view head);
// For the header of the same name of a served page.
std::string ContentSecurityPolicy(const Bundle& bundle, bool served);

}  // namespace culprit::page

// SPDX-License-Identifier: Apache-2.0
//
// ParseCtfTsdl: the metadata text of CTF 1.8 to a CtfSchema. TSDL looks like C:
//
//   text    = { typealias | typedef | struct | variant | enum | block } ;
//   block   = ( "trace" | "stream" | "event" | "clock" | "env" | "callsite" )
//             "{" { path ( "=" value | ":=" type ) ";" } "}" ";" ;
//   type    = "integer" | "floating_point" | "string" | struct | variant | enum
//           | name { name } ;
//   struct  = "struct" [ name ] [ "{" { type name { "[" length "]" } ";" } "}" ]
//             [ "align" "(" number ")" ] ;
//   variant = "variant" [ name ] [ "<" path ">" ] [ "{" fields "}" ] ;
//   enum    = "enum" [ name ] [ ":" type ] [ "{" label [ "=" range ] ... "}" ] ;
//
// Names are looked up in the enclosing blocks, outwards. A declaration that
// makes no sense is counted with its offset and skipped to the next ";" outside
// of all braces, so that the others keep their meaning. Time is linear in the
// text; nesting beyond kMaxCtfDepth is refused.
#pragma once

#include <string_view>

#include "base/diagnostics.h"
#include "import/ctf_schema.h"

namespace culprit::import_ {

CtfSchema ParseCtfTsdl(std::string_view text, Diagnostics& diagnostics);

}  // namespace culprit::import_

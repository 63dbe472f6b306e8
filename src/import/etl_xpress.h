// SPDX-License-Identifier: Apache-2.0
//
// The two compressions of ETW buffers, as [MS-XCA] defines them: plain LZ77
// ("XPRESS", groups of 32 flags, literals and matches) and LZ77 with Huffman
// codes (blocks of 64 KB, each with its own table of code lengths).
//
// Both unpack until `size` bytes are there and never make more. Input is
// untrusted: every read and every distance is checked. False: the bytes are
// damaged or end too early; `out` then holds what came before. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace culprit::import_ {

bool UnpackXpress(std::string_view bytes, size_t size, std::string& out);
bool UnpackXpressHuffman(std::string_view bytes, size_t size, std::string& out);

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
//
// FrameLines: the stack lines of `perf script` as frames of a dictionary.
//
//   ADDRESS SYMBOL[+0xOFFSET] (MODULE)      7f81ee50c5d7 ioctl+0x7 (/lib/libc.so)
//   ADDRESS SYMBOL (inlined)                module of the frame that follows
//   ADDRESS [unknown] (MODULE)
//
// A named frame is its function, whatever the address, so that one function is
// one frame; an unnamed one in a known module is its address. Lines repeat, so
// each distinct line is read once and remembered (bounded).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/dictionary.h"

namespace culprit::import_ {

class FrameLines {
 public:
  explicit FrameLines(trace::Dictionary& dictionary) : dictionary_(dictionary) {}

  // False: this is no stack line.
  bool Add(std::string_view line);
  // The frames since the last call, leaf first, inlined ones given a module.
  // `drop_double_leaf`: perf prints the leaf of a tracepoint's stack twice.
  std::vector<trace::FrameId> Take(bool drop_double_leaf);

 private:
  struct Line {
    trace::FrameId frame;
    bool inlined = false;
  };
  std::optional<Line> Read(std::string_view line);
  trace::ModuleId ModuleOf(std::string_view text);

  trace::Dictionary& dictionary_;
  std::unordered_map<std::string, Line> known_;
  std::string key_;
  std::vector<Line> lines_;
};

// "[kernel]" and "[ext4]" for what perf calls [kernel.kallsyms], vmlinux or
// ext4.ko; the file's name for others; empty for [unknown].
std::string ModuleName(std::string_view path);
bool IsKernelModule(std::string_view module_name, uint64_t address);

}  // namespace culprit::import_

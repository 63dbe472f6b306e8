// SPDX-License-Identifier: Apache-2.0
//
// MemoryBytes and FileBytes: where the bytes of a Source are. Both are
// immutable and may be read from several threads. A FileBytes keeps its file
// open, so an unlinked temporary lives as long as the last Source that has it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "import/source.h"

namespace culprit::import_ {

class MemoryBytes : public Bytes {
 public:
  explicit MemoryBytes(std::string bytes) : bytes_(std::move(bytes)) {}

  Status ReadAt(uint64_t offset, size_t count, std::string& out) const override {
    if (offset >= bytes_.size()) {
      out.clear();
    } else {
      out.assign(bytes_, offset, count);
    }
    return {};
  }
  uint64_t size() const override { return bytes_.size(); }

 private:
  std::string bytes_;
};

class FileBytes : public Bytes {
 public:
  explicit FileBytes(InputFile file) : file_(std::move(file)) {}

  Status ReadAt(uint64_t offset, size_t count, std::string& out) const override {
    return file_.ReadAt(offset, count, out);
  }
  uint64_t size() const override { return file_.size(); }

 private:
  InputFile file_;
};

// A single file in memory, as tests and fuzz targets need it.
inline Source MemorySource(std::string name, std::string bytes) {
  return Source(std::move(name), {{"", std::make_shared<MemoryBytes>(std::move(bytes))}});
}

}  // namespace culprit::import_

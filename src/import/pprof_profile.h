// SPDX-License-Identifier: Apache-2.0
//
// Profile: a pprof profile in memory, whichever of its formats it came in:
// samples with a stack and some values each, no times. Strings are views of the
// input, which the profile owns. Stacks are leaf first, as pprof has them; a
// location has more than one line where functions were inlined, the innermost
// first. Indexes are checked when the profile is read, so they can be trusted.
//
// The whole input and about 100 bytes a location and 40 bytes a sample are in
// memory; inputs beyond kMaxProfileBytes are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace culprit::import_ {

inline constexpr uint64_t kMaxProfileBytes = uint64_t{1} << 30;

struct Profile {
  static constexpr uint32_t kNone = UINT32_MAX;

  struct ValueType {
    std::string_view type;  // "cpu", "delay", "alloc_space"
    std::string_view unit;  // "nanoseconds", "count", "bytes"
  };
  struct Mapping {
    uint64_t start = 0;
    uint64_t limit = 0;
    uint64_t offset = 0;
    std::string_view path;
    std::string_view build_id;
  };
  struct Function {
    std::string_view name;
    std::string_view file;
  };
  struct Line {
    uint32_t function = kNone;
    uint32_t line = 0;
  };
  struct Location {
    uint64_t address = 0;
    uint32_t mapping = kNone;
    std::vector<Line> lines;
  };
  struct Sample {
    uint64_t first_location = 0;  // in stack_locations
    uint64_t first_value = 0;     // in values
    uint32_t locations = 0;
    uint32_t value_count = 0;
    uint64_t input_offset = 0;
  };

  std::unique_ptr<const std::string> text;
  std::vector<ValueType> value_types;
  ValueType period_type;
  int64_t period = 0;
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  std::string_view default_type;
  std::vector<Mapping> mappings;
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::vector<Sample> samples;
  std::vector<uint32_t> stack_locations;
  std::vector<int64_t> values;

  std::span<const uint32_t> StackOf(const Sample& sample) const {
    return std::span(stack_locations).subspan(sample.first_location, sample.locations);
  }
  std::span<const int64_t> ValuesOf(const Sample& sample) const {
    return std::span(values).subspan(sample.first_value, sample.value_count);
  }
};

// The readers of pprof's formats. `name` stands for the file in errors.
Result<Profile> ReadPprofProto(std::string bytes, const std::string& name,
                               Diagnostics& diagnostics);
Result<Profile> ReadPprofLegacy(std::string bytes, const std::string& name,
                                Diagnostics& diagnostics);

// Does an input begin like one of them?
bool LooksLikePprofProto(std::string_view head);
bool LooksLikePprofLegacy(std::string_view head);

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
//
// The tables of a Firefox Profiler thread (processed profile format 58). Each
// thread has its own stacks, frames, functions and resources, all as columns;
// strings and source files are shared by all. FirefoxThread takes the events of
// one thread in time order and keeps its columns as text until Write(): some
// 60 bytes a sample. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/string_table.h"
#include "export/chunked_sink.h"
#include "trace/trace.h"

namespace culprit::export_ {

// time_ns - origin_ns in milliseconds, exact: "1.000001".
std::string Milliseconds(int64_t time_ns, int64_t origin_ns = 0);

// In the order of meta.categories.
enum class FirefoxCategory : uint8_t { kOther = 0, kUser, kKernel, kWait, kReady };

class FirefoxShared {
 public:
  uint32_t Text(std::string_view text);
  uint32_t Source(std::string_view file);
  Status Write(ChunkedSink& out) const;

 private:
  StringTable strings_;
  std::vector<uint32_t> source_names_;
  std::unordered_map<uint32_t, uint32_t> sources_;  // by name
};

// What the threads of a profile draw on.
struct FirefoxTables {
  FirefoxTables(const trace::Dictionary& d, FirefoxShared& s) : dictionary(d), shared(s) {}
  const trace::Dictionary& dictionary;
  FirefoxShared& shared;
};

// A column of a table: values with commas between them.
class FirefoxColumn {
 public:
  void Add(std::string_view value) {
    if (!text_.empty()) text_ += ',';
    text_ += value;
  }
  void Add(int64_t value) { Add(std::to_string(value)); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class FirefoxThread {
 public:
  FirefoxThread(FirefoxTables& tables, int64_t begin_ns) : tables_(tables), begin_ns_(begin_ns) {}

  void AddSample(const trace::Event& event);
  void AddMarker(const trace::Event& event);
  void AddInstance(const trace::Instance& instance);
  bool empty() const { return samples_ == 0 && markers_ == 0; }
  // All tables and the brace that closes the thread.
  Status Write(ChunkedSink& out) const;

 private:
  // A frame that stands for something other than code.
  enum Pseudo : uint32_t { kWaitFrame = UINT32_MAX - 4, kReadyFrame, kNotSampledFrame, kNoFrame };

  uint32_t StackNode(int64_t prefix, uint32_t frame_key);
  int64_t StackOf(const trace::Event& event);
  uint32_t FrameOf(uint32_t frame_key);
  uint32_t FunctionOf(std::string_view name, trace::ModuleId module, std::string_view file);
  int64_t ResourceOf(trace::ModuleId module);
  void PutMarker(std::string_view name, int64_t begin_ns, int64_t end_ns, const std::string& data);

  FirefoxTables& tables_;
  const int64_t begin_ns_;
  std::map<std::pair<int64_t, uint32_t>, uint32_t> stack_index_;  // prefix and frame
  std::unordered_map<uint32_t, uint32_t> stack_of_id_;            // by the trace's id
  std::unordered_map<uint32_t, uint32_t> frame_index_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> function_index_;  // name and resource
  std::unordered_map<uint32_t, uint32_t> resource_index_;
  FirefoxColumn stack_frame_, stack_prefix_;
  FirefoxColumn frame_function_, frame_category_, frame_line_;
  FirefoxColumn function_name_, function_resource_, function_source_;
  FirefoxColumn resource_library_, resource_name_;
  FirefoxColumn sample_stack_, sample_time_, sample_weight_, sample_cpu_;
  FirefoxColumn marker_data_, marker_name_, marker_begin_, marker_end_;
  size_t samples_ = 0;
  size_t markers_ = 0;
  int64_t ran_before_ns_ = 0;  // how long the sample before was running code
};

}  // namespace culprit::export_

// SPDX-License-Identifier: Apache-2.0
//
// EtlFrames: addresses of an ETW recording to frames and stacks of the trace. An
// address belongs to the image that its process (or the kernel) had loaded there
// at that time: module and offset in it, the debug id of the image as the
// module's build-id. Code of a just-in-time compiler has names of its own. Where
// the image's file is at hand and of the same build, its exports name functions,
// and an unnamed one is the offset of its start (etl_image_file.h).
//
// Images come and go in order of time (Load, Forget). Whole stacks are cached by
// their parts and the version of the address space, so a stack seen before costs
// one probe. Memory: the images and methods of the survey, and kMaxCachedStacks.
// One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/etl_image_file.h"
#include "import/etl_survey.h"
#include "import/perf_data_space.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

// The kind of device that a driver serves: "disk" for "storport.sys"; empty: any.
std::string_view EtlDeviceOf(std::string_view driver_name);
// So many frames of an interrupt's stack are looked at: further out stands the
// code that was interrupted.
inline constexpr size_t kMaxEtlInterruptFrames = 8;

class EtlFrames {
 public:
  static constexpr size_t kMaxCachedStacks = size_t{1} << 19;
  static constexpr int64_t kNoProcess = -2;

  // `sysroot`: where the recorded machine's files are; empty: they are not here.
  // Survey and dictionary outlive this object.
  EtlFrames(const EtlSurvey& survey, uint32_t pointer_bytes, std::string sysroot,
            trace::Dictionary& dictionary);

  void Load(const EtlImageRow& image);
  void Forget(uint32_t pid) { spaces_.Forget(pid); }

  trace::StackId Stack(int64_t pid, const EtlStack& stack);
  // The kernel's part alone, as of an interrupt.
  trace::StackId KernelStack(const EtlStack& stack);
  // All that is known is where the code stood.
  trace::StackId Leaf(int64_t pid, uint64_t address);
  // "disk", "net", ... by the drivers nearest to the leaf; empty: no telling.
  std::string_view Device(const EtlStack& stack) const;
  uint64_t left_out() const { return spaces_.left_out(); }
  uint64_t other_builds() const { return other_builds_; }

 private:
  struct Module {
    trace::ModuleId id;
    std::string_view device;  // static text
    std::optional<EtlImageFile> file;
  };
  struct Method {
    uint64_t end = 0;
    trace::ModuleId module;
    StringId name;
  };
  struct Key {
    uint32_t kernel;
    uint32_t user;
    uint64_t version;
    int64_t pid;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  // `image_bytes` 0: no image.
  uint32_t ModuleOf(std::string_view path, const std::string& debug_id, uint64_t image_bytes);
  std::optional<EtlImageFile> OpenFile(std::string_view path, const std::string& debug_id,
                                       uint64_t image_bytes);
  void AddMethods(const EtlSurvey& survey);
  const PerfMap* MapOf(int64_t pid, uint64_t address) const;
  // `is_return`: the call is before the address.
  trace::FrameId Frame(int64_t pid, uint64_t address, bool is_return);
  // Appends, caller first.
  void AddPart(int64_t pid, uint32_t part, std::vector<trace::FrameId>& frames);
  trace::StackId Build(int64_t pid, const EtlStack& stack, bool may_be_cut);

  const EtlSurvey& survey_;
  uint32_t pointer_bytes_;
  std::string sysroot_;
  uint64_t other_builds_ = 0;  // files that were not used
  trace::Dictionary& dictionary_;
  trace::FrameId truncated_;
  PerfSpaces spaces_;
  std::vector<Module> modules_;
  std::map<std::pair<std::string, std::string>, uint32_t, std::less<>> module_numbers_;
  std::unordered_map<int64_t, std::map<uint64_t, Method>> methods_;  // by pid, then start
  std::unordered_map<Key, trace::StackId, KeyHash> stacks_;
};

}  // namespace culprit::import_

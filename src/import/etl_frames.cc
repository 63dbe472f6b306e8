// SPDX-License-Identifier: Apache-2.0
#include "import/etl_frames.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "base/file.h"
#include "base/glob.h"
#include "import/etl_text.h"

namespace culprit::import_ {
namespace {

using trace::FrameId;
using trace::StackId;

constexpr std::string_view kEtlUnknownModule = "[unknown]";
constexpr uint32_t kEtlSystemProcess = 4;
// A walk of as many frames, or more, was stopped by its recorder.
constexpr size_t kMaxEtlWalk = 192;

struct EtlDriverClass {
  std::string_view name;  // glob over the module's name
  std::string_view device;
};
constexpr std::array<EtlDriverClass, 28> kEtlDrivers = {{
    {"storport.sys", "disk"},  {"stornvme.sys", "disk"}, {"storahci.sys", "disk"},
    {"iastor*.sys", "disk"},   {"ataport.sys", "disk"},  {"atapi.sys", "disk"},
    {"msahci.sys", "disk"},    {"scsiport.sys", "disk"}, {"classpnp.sys", "disk"},
    {"disk.sys", "disk"},      {"partmgr.sys", "disk"},  {"nvme*.sys", "disk"},
    {"spaceport.sys", "disk"}, {"ndis.sys", "net"},      {"tcpip.sys", "net"},
    {"netio.sys", "net"},      {"afd.sys", "net"},       {"nwifi.sys", "net"},
    {"wdiwifi.sys", "net"},    {"vmswitch.sys", "net"},  {"dxgkrnl.sys", "gpu"},
    {"dxgmms*.sys", "gpu"},    {"nvlddmkm.sys", "gpu"},  {"igdkmd*.sys", "gpu"},
    {"usbport.sys", "usb"},    {"usbxhci.sys", "usb"},   {"ucx01000.sys", "usb"},
    {"hidclass.sys", "usb"},
}};

}  // namespace

std::string_view EtlDeviceOf(std::string_view driver_name) {
  for (const EtlDriverClass& driver : kEtlDrivers) {
    if (MatchesGlob(driver.name, driver_name)) return driver.device;
  }
  return {};
}

size_t EtlFrames::KeyHash::operator()(const Key& key) const {
  uint64_t hash = uint64_t{key.kernel} << 32 | key.user;
  hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15;
  hash ^= key.version * 0xff51afd7ed558ccd + static_cast<uint64_t>(key.pid);
  return (hash ^ hash >> 32) * 0xc4ceb9fe1a85ec53;
}

EtlFrames::EtlFrames(const EtlSurvey& survey, uint32_t pointer_bytes, std::string sysroot,
                     trace::Dictionary& dictionary)
    : survey_(survey),
      pointer_bytes_(pointer_bytes),
      sysroot_(std::move(sysroot)),
      dictionary_(dictionary) {
  trace::Frame frame;
  frame.function = dictionary_.Intern(trace::kTruncatedFunction);
  truncated_ = dictionary_.InternFrame(frame);
  AddMethods(survey);
}

// A file is the image's if it has the same debug id or, where the recording has
// none, the same size.
std::optional<EtlImageFile> EtlFrames::OpenFile(std::string_view path, const std::string& debug_id,
                                                uint64_t image_bytes) {
  if (sysroot_.empty() || image_bytes == 0) return std::nullopt;
  const std::string name = FindImageFile(sysroot_, path);
  if (name.empty()) return std::nullopt;
  Result<InputFile> input = InputFile::Open(name);
  if (!input.ok() || input.value().size() > kMaxImageBytes) return std::nullopt;
  std::string bytes;
  if (!input.value().ReadAt(0, input.value().size(), bytes).ok()) return std::nullopt;
  std::optional<EtlImageFile> file = EtlImageFile::Parse(bytes);
  if (!file) return std::nullopt;
  const bool same =
      debug_id.empty() ? file->image_bytes() == image_bytes : file->debug_id() == debug_id;
  if (same) return file;
  ++other_builds_;
  return std::nullopt;
}

uint32_t EtlFrames::ModuleOf(std::string_view path, const std::string& debug_id,
                             uint64_t image_bytes) {
  const auto number = static_cast<uint32_t>(modules_.size());
  const auto [it, is_new] = module_numbers_.try_emplace({std::string(path), debug_id}, number);
  if (!is_new) return it->second;
  const std::string name = ModuleNameOf(path);
  trace::Module module;
  module.name = dictionary_.Intern(name.empty() ? kEtlUnknownModule : std::string_view(name));
  if (!path.empty() && path != kEtlUnknownModule) module.path = dictionary_.Intern(path);
  if (!debug_id.empty()) module.build_id = dictionary_.Intern(debug_id);
  modules_.push_back({.id = dictionary_.InternModule(module),
                      .device = EtlDeviceOf(name),
                      .file = OpenFile(path, debug_id, image_bytes)});
  return number;
}

// Names do not go when their code does: late stacks still need them.
void EtlFrames::AddMethods(const EtlSurvey& survey) {
  for (const EtlMethodRow& row : survey.methods) {
    const auto module = survey.method_modules.find({row.pid, row.module});
    std::string_view path = kEtlUnknownModule;
    if (module != survey.method_modules.end()) path = survey.strings.Get(module->second);
    methods_[row.pid][row.start] = {.end = row.start + row.size,
                                    .module = modules_[ModuleOf(path, {}, 0)].id,
                                    .name = dictionary_.Intern(survey.strings.Get(row.name))};
  }
}

void EtlFrames::Load(const EtlImageRow& image) {
  if (image.base == 0 || image.base + image.size < image.base) return;
  const auto id = survey_.debug_ids.find({image.pid, image.base});
  const uint32_t module =
      ModuleOf(survey_.strings.Get(image.path),
               id == survey_.debug_ids.end() ? std::string() : id->second, image.size);
  const bool kernel = IsEtlKernelAddress(image.base, pointer_bytes_);
  spaces_.Map(
      kernel ? PerfSpaces::kKernelPid : int64_t{image.pid},
      {.start = image.base, .end = image.base + image.size, .file_offset = 0, .module = module});
}

const PerfMap* EtlFrames::MapOf(int64_t pid, uint64_t address) const {
  return spaces_.Find(IsEtlKernelAddress(address, pointer_bytes_) ? PerfSpaces::kKernelPid : pid,
                      address);
}

FrameId EtlFrames::Frame(int64_t pid, uint64_t address, bool is_return) {
  trace::Frame frame;
  frame.offset = address;
  if (IsEtlKernelAddress(address, pointer_bytes_)) frame.flags = trace::kKernelMode;
  const PerfMap* map = MapOf(pid, address);
  if (map != nullptr) {
    frame.module = modules_[map->module].id;
    frame.offset = address - map->start + map->file_offset;
    const auto& file = modules_[map->module].file;
    const auto function =
        file ? file->Find(frame.offset - (is_return && frame.offset != 0 ? 1 : 0)) : std::nullopt;
    if (function) frame.offset = function->start;
    if (function && !function->name.empty()) frame.function = dictionary_.Intern(function->name);
  }
  const auto methods = methods_.find(pid);
  if (methods != methods_.end()) {
    const uint64_t inside = address - (is_return && address != 0 ? 1 : 0);
    auto it = methods->second.upper_bound(inside);
    if (it != methods->second.begin() && inside < (--it)->second.end) {
      if (map == nullptr) frame.module = it->second.module;
      frame.function = it->second.name;
      frame.offset = map == nullptr ? 0 : it->first - map->start + map->file_offset;
    }
  }
  if (!frame.module.valid()) frame.module = modules_[ModuleOf(kEtlUnknownModule, {}, 0)].id;
  return dictionary_.InternFrame(frame);
}

void EtlFrames::AddPart(int64_t pid, uint32_t part, std::vector<FrameId>& frames) {
  const std::span<const uint64_t> addresses = survey_.stacks.Addresses(part);
  for (size_t i = addresses.size(); i-- > 0;) {
    if (addresses[i] != 0) frames.push_back(Frame(pid, addresses[i], i != 0));
  }
}

// A thread that came from user code and has no user part lacks its callers; so
// does a walk that was stopped.
StackId EtlFrames::Build(int64_t pid, const EtlStack& stack, bool may_be_cut) {
  std::vector<FrameId> frames;
  const auto outermost =
      survey_.stacks.Addresses(stack.user != EtlStack::kNone ? stack.user : stack.kernel);
  if (outermost.empty()) return {};
  const bool from_user = may_be_cut && pid != kEtlSystemProcess && spaces_.version(pid) != 0;
  const bool ends_in_kernel = IsEtlKernelAddress(outermost.back(), pointer_bytes_);
  if (outermost.size() >= kMaxEtlWalk || (from_user && ends_in_kernel))
    frames.push_back(truncated_);
  AddPart(pid, stack.user, frames);
  AddPart(pid, stack.kernel, frames);
  return dictionary_.InternStack(frames);
}

StackId EtlFrames::Stack(int64_t pid, const EtlStack& stack) {
  if (stack.empty()) return {};
  const uint64_t version = spaces_.version(pid) + (spaces_.version(PerfSpaces::kKernelPid) << 32);
  const Key key = {stack.kernel, stack.user, version, pid};
  const auto it = stacks_.find(key);
  if (it != stacks_.end()) return it->second;
  const StackId id = Build(pid, stack, true);
  if (stacks_.size() < kMaxCachedStacks) stacks_.emplace(key, id);
  return id;
}

StackId EtlFrames::KernelStack(const EtlStack& stack) {
  return Build(kNoProcess, {.kernel = stack.kernel, .user = EtlStack::kNone}, false);
}

StackId EtlFrames::Leaf(int64_t pid, uint64_t address) {
  std::vector<FrameId> frames;
  if (!survey_.stacks.empty()) frames.push_back(truncated_);
  frames.push_back(Frame(pid, address, false));
  return dictionary_.InternStack(frames);
}

std::string_view EtlFrames::Device(const EtlStack& stack) const {
  const auto addresses = survey_.stacks.Addresses(stack.kernel);
  for (const uint64_t address :
       addresses.first(std::min(addresses.size(), kMaxEtlInterruptFrames))) {
    const PerfMap* map = MapOf(kNoProcess, address);
    if (map != nullptr && !modules_[map->module].device.empty()) {
      return modules_[map->module].device;
    }
  }
  return {};
}

}  // namespace culprit::import_

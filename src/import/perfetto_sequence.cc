// SPDX-License-Identifier: Apache-2.0
#include "import/perfetto_sequence.h"

#include <algorithm>

#include "import/importer.h"
#include "import/kernel_stacks.h"
#include "import/perfetto_proto.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxPathParts = 256;
constexpr size_t kMaxText = 4096;  // of a path or function name

// InternedString, EventName: iid = 1, the text = 2.
void AddString(std::string_view message, std::unordered_map<uint64_t, std::string>& strings) {
  uint64_t iid = 0;
  std::string_view text;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) iid = field.value;
    if (field.number == 2) text = field.bytes;
  }
  if (iid != 0) strings[iid] = text;
}

template <class Map>
const typename Map::mapped_type* Lookup(const Map& map, uint64_t iid) {
  const auto it = map.find(iid);
  return it == map.end() ? nullptr : &it->second;
}

// Build ids are raw bytes, in some traces already hexadecimal.
std::string Hexadecimal(const std::string& id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const bool done = std::all_of(id.begin(), id.end(),
                                [&](char c) { return kDigits.find(c) != std::string_view::npos; });
  if (done && id.size() % 2 == 0 && id.size() >= 16) return id;
  std::string text;
  for (const char c : id) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return text;
}

PerfTimebase ReadTimebase(std::string_view message) {
  PerfTimebase timebase;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) timebase.period = field.value;
    if (field.number == 2) timebase.frequency = field.value;
    if (field.number == 4) timebase.counter = static_cast<uint32_t>(field.value);
    if (field.number != 3) continue;
    ProtoReader tracepoint(field.bytes);
    ProtoField part;
    while (tracepoint.Next(part)) {
      if (part.number == 1) timebase.tracepoint = part.bytes;
    }
  }
  return timebase;
}

}  // namespace

void PerfettoSequence::Clear() {
  event_names_.clear();
  functions_.clear();
  paths_.clear();
  build_ids_.clear();
  mappings_.clear();
  frames_.clear();
  callstacks_.clear();
  frame_ids_.clear();
  for (auto& stacks : stacks_) stacks.clear();
  clock = 0;
  track = 0;
  timebase = {};
  valid_ = true;
}

void PerfettoSequence::AddMapping(std::string_view message) {
  uint64_t iid = 0;
  Mapping mapping;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) iid = field.value;
    if (field.number == 2) mapping.build_id = field.value;
    if (field.number == 6) mapping.load_bias = field.value;
    if (field.number == 7) AppendNumbers(field, mapping.path);
  }
  if (mapping.path.size() > kMaxPathParts) mapping.path.resize(kMaxPathParts);
  mappings_[iid] = std::move(mapping);
}

void PerfettoSequence::AddFrame(std::string_view message) {
  uint64_t iid = 0;
  Frame frame;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) iid = field.value;
    if (field.number == 2) frame.function = field.value;
    if (field.number == 3) frame.mapping = field.value;
    if (field.number == 4) frame.rel_pc = field.value;
    if (field.number == 6) frame.line = static_cast<uint32_t>(field.value);
    if (field.number == 7) frame.kernel = field.value == 2;
  }
  frames_[iid] = frame;
  frame_ids_.erase(iid);
}

void PerfettoSequence::AddInterned(std::string_view message) {
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    switch (field.number) {
      case 2:
        AddString(field.bytes, event_names_);
        break;
      case 5:
        AddString(field.bytes, functions_);
        break;
      case 6:
        AddFrame(field.bytes);
        break;
      case 7: {
        uint64_t iid = 0;
        std::vector<uint64_t> frames;
        ProtoReader callstack(field.bytes);
        ProtoField part;
        while (callstack.Next(part)) {
          if (part.number == 1) iid = part.value;
          if (part.number == 2) AppendNumbers(part, frames);
        }
        if (frames.size() > kMaxStackFrames) frames.resize(kMaxStackFrames);
        callstacks_[iid] = std::move(frames);
        for (auto& stacks : stacks_) stacks.erase(iid);
        break;
      }
      case 16:
        AddString(field.bytes, build_ids_);
        break;
      case 17:
        AddString(field.bytes, paths_);
        break;
      case 19:
        AddMapping(field.bytes);
        break;
      default:
        break;
    }
  }
}

void PerfettoSequence::SetDefaults(std::string_view message) {
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 58) clock = static_cast<uint32_t>(field.value);
    if (field.number != 11 && field.number != 12) continue;
    ProtoReader part(field.bytes);
    ProtoField inner;
    while (part.Next(inner)) {
      if (field.number == 11 && inner.number == 11) track = inner.value;
      if (field.number == 12 && inner.number == 1) timebase = ReadTimebase(inner.bytes);
    }
  }
}

std::string_view PerfettoSequence::EventName(uint64_t iid) const {
  const std::string* name = Lookup(event_names_, iid);
  return name == nullptr ? std::string_view() : *name;
}

trace::FrameId PerfettoSequence::FrameOf(const Frame& frame, trace::Dictionary& dictionary,
                                         symbol::Symbolizer* symbolizer) const {
  std::string path;
  std::string build_id;
  uint64_t load_bias = 0;
  if (const Mapping* mapping = Lookup(mappings_, frame.mapping)) {
    for (const uint64_t part : mapping->path) {
      const std::string* text = Lookup(paths_, part);
      if (text != nullptr && path.size() + text->size() < kMaxText) path += "/" + *text;
    }
    if (const std::string* id = Lookup(build_ids_, mapping->build_id)) build_id = Hexadecimal(*id);
    load_bias = mapping->load_bias;
  }
  const bool bracketed = path.starts_with("/[");
  if (bracketed) path.erase(0, 1);
  const bool kernel = frame.kernel || path == "/kernel" || path.starts_with("[kernel");
  std::string function;
  if (const std::string* text = Lookup(functions_, frame.function)) {
    function = text->substr(0, kMaxText);
  }
  if (function.empty() && symbolizer != nullptr && !kernel && !path.empty()) {
    // The profiler already points callers' addresses into the call.
    function = symbolizer->Lookup({path, build_id}, frame.rel_pc - load_bias, false)[0].function;
  }
  const std::string_view base = std::string_view(path).substr(path.rfind('/') + 1);
  trace::Frame row;
  row.module = dictionary.InternModule(
      {.name = dictionary.Intern(kernel         ? "[kernel]"
                                 : base.empty() ? "[unknown]"
                                                : base),
       .path = path.empty() || kernel ? StringId() : dictionary.Intern(path),
       .build_id = build_id.empty() ? StringId() : dictionary.Intern(build_id)});
  row.flags = kernel ? trace::kKernelMode : 0;
  row.line = frame.line;
  if (function.empty()) {
    row.offset = frame.rel_pc;
  } else {
    row.function = dictionary.Intern(symbol::Demangle(function));
  }
  return dictionary.InternFrame(row);
}

trace::StackId PerfettoSequence::Stack(uint64_t iid, bool truncated, trace::Dictionary& dictionary,
                                       symbol::Symbolizer* symbolizer) {
  auto& stacks = stacks_[truncated ? 1 : 0];
  const auto known = stacks.find(iid);
  if (known != stacks.end()) return known->second;
  std::vector<trace::FrameId> frames;
  if (const std::vector<uint64_t>* ids = Lookup(callstacks_, iid)) {
    if (truncated) frames.push_back(dictionary.InternFrame("", trace::kTruncatedFunction));
    for (const uint64_t id : *ids) {
      const auto [it, is_new] = frame_ids_.try_emplace(id);
      if (is_new) {
        const Frame* frame = Lookup(frames_, id);
        it->second = FrameOf(frame == nullptr ? Frame() : *frame, dictionary, symbolizer);
      }
      frames.push_back(it->second);
    }
  }
  const auto is_tracer = [&](trace::FrameId id) {
    const std::string_view function = dictionary.Text(dictionary.frames()[id.value].function);
    return (TraitsOf(function) & kTracerFrame) != 0;
  };
  while (!frames.empty() && is_tracer(frames.back())) frames.pop_back();
  return stacks[iid] = dictionary.InternStack(frames);
}

}  // namespace culprit::import_

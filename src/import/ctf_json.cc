// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_json.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace culprit::import_ {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFragmentBytes = size_t{64} << 20;
constexpr int kMaxJsonDepth = 200;

constexpr std::pair<std::string_view, CtfScope> kOrigins[] = {
    {"packet-header", CtfScope::kPacketHeader},
    {"packet-context", CtfScope::kPacketContext},
    {"event-record-header", CtfScope::kEventHeader},
    {"event-record-common-context", CtfScope::kCommonContext},
    {"event-record-specific-context", CtfScope::kEventContext},
    {"event-record-payload", CtfScope::kPayload},
};

constexpr std::pair<std::string_view, CtfRole> kRoles[] = {
    {"packet-magic-number", CtfRole::kMagic},
    {"data-stream-class-id", CtfRole::kStreamClassId},
    {"data-stream-id", CtfRole::kStreamId},
    {"packet-total-length", CtfRole::kPacketSize},
    {"packet-content-length", CtfRole::kContentSize},
    {"default-clock-timestamp", CtfRole::kTimestamp},
    {"packet-end-default-clock-timestamp", CtfRole::kEnd},
    {"discarded-event-record-counter-snapshot", CtfRole::kDiscarded},
    {"packet-sequence-number", CtfRole::kSequence},
    {"event-record-class-id", CtfRole::kEventId},
};

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::string Text(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

// Integers only; a negative one in two's complement.
std::optional<uint64_t> Number(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  if (value->is_number_integer()) return static_cast<uint64_t>(value->get<int64_t>());
  return std::nullopt;
}
uint64_t Number(const Json& object, const char* key, uint64_t otherwise) {
  return Number(Find(object, key)).value_or(otherwise);
}

// nlohmann's parser recurses on nothing, but its values are destroyed level by
// level; a bound on the depth keeps every later walk shallow as well.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::vector<CtfRange> Ranges(const Json* value) {
  std::vector<CtfRange> ranges;
  if (value == nullptr || !value->is_array()) return ranges;
  for (const Json& pair : *value) {
    if (!pair.is_array() || pair.size() != 2) continue;
    const auto low = Number(&pair[0]);
    const auto high = Number(&pair[1]);
    if (!low || !high) continue;
    ranges.push_back({static_cast<int64_t>(*low), static_cast<int64_t>(*high)});
  }
  return ranges;
}

CtfReference Reference(const Json* location) {
  CtfReference reference;
  if (location == nullptr) return reference;
  const std::string origin = Text(*location, "origin");
  for (const auto& [name, scope] : kOrigins) {
    if (origin == name) reference.origin = scope;
  }
  if (const Json* path = Find(*location, "path"); path != nullptr && path->is_array()) {
    for (const Json& step : *path) {
      if (step.is_string()) reference.path.push_back(step.get<std::string>());
    }
  }
  return reference;
}

class FragmentReader {
 public:
  explicit FragmentReader(CtfSchema& schema) : schema_(schema) {}

  // Empty if the fragment made sense, else what is wrong with it.
  std::string Read(const Json& fragment) {
    problem_.clear();
    const std::string type = Text(fragment, "type");
    if (type == "preamble") {
      if (Number(fragment, "version", 0) != 2) problem_ = "version other than 2";
    } else if (type == "field-class-alias") {
      const uint32_t field = Class(Find(fragment, "field-class"), 0);
      if (problem_.empty()) aliases_[Text(fragment, "name")] = field;
    } else if (type == "trace-class") {
      TraceClass(fragment);
    } else if (type == "clock-class") {
      ClockClass(fragment);
    } else if (type == "data-stream-class") {
      StreamClass(fragment);
    } else if (type == "event-record-class") {
      EventClass(fragment);
    } else {
      problem_ = "unknown type";
    }
    return problem_;
  }

 private:
  uint32_t Optional(const Json& object, const char* key) {
    const Json* value = Find(object, key);
    return value == nullptr ? kNoField : Class(value, 0);
  }

  void TraceClass(const Json& fragment) {
    schema_.packet_header = Optional(fragment, "packet-header-field-class");
    const Json* environment = Find(fragment, "environment");
    if (environment == nullptr || !environment->is_object()) return;
    for (const auto& [key, value] : environment->items()) {
      schema_.environment[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }

  void ClockClass(const Json& fragment) {
    CtfClock clock = {.name = Text(fragment, "id")};
    if (clock.name.empty()) clock.name = Text(fragment, "name");
    clock.frequency = Number(fragment, "frequency", 0);
    clock.is_wall = Text(fragment, "origin") == "unix-epoch";
    const Json* offset = Find(fragment, "offset-from-origin");
    if (offset == nullptr) offset = Find(fragment, "offset");
    if (offset != nullptr) {
      clock.offset_s = static_cast<int64_t>(Number(*offset, "seconds", 0));
      clock.offset_cycles = static_cast<int64_t>(Number(*offset, "cycles", 0));
    }
    schema_.clocks.push_back(std::move(clock));
  }

  void StreamClass(const Json& fragment) {
    CtfStreamClass stream = {.id = Number(fragment, "id", 0)};
    stream.clock = Text(fragment, "default-clock-class-id");
    if (stream.clock.empty()) stream.clock = Text(fragment, "default-clock-class-name");
    stream.packet_context = Optional(fragment, "packet-context-field-class");
    stream.event_header = Optional(fragment, "event-record-header-field-class");
    stream.event_context = Optional(fragment, "event-record-common-context-field-class");
    if (problem_.empty()) schema_.streams.push_back(std::move(stream));
  }

  void EventClass(const Json& fragment) {
    CtfEventClass event = {.id = Number(fragment, "id", 0)};
    event.stream_id = Number(fragment, "data-stream-class-id", 0);
    event.name = Text(fragment, "name");
    event.context = Optional(fragment, "specific-context-field-class");
    event.payload = Optional(fragment, "payload-field-class");
    if (problem_.empty()) schema_.events.push_back(std::move(event));
  }

  uint32_t Fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
    return 0;
  }

  uint32_t Add(CtfField field) {
    if (schema_.fields.size() >= kMaxCtfFields) return Fail("too many fields");
    return schema_.Add(std::move(field));
  }

  uint32_t Align(const Json& object, const char* key) {
    const uint64_t align = Number(object, key, 1);
    if (!std::has_single_bit(align) || align > kMaxCtfAlign) return Fail("bad alignment") + 1;
    return static_cast<uint32_t>(align);
  }

  uint32_t Class(const Json* value, int depth) {
    if (value == nullptr || depth > kMaxCtfDepth) return Fail("field class missing or too deep");
    if (value->is_string()) {
      const auto it = aliases_.find(value->get<std::string>());
      return it == aliases_.end() ? Fail("unknown field class alias") : it->second;
    }
    const std::string type = Text(*value, "type");
    if (type.starts_with("fixed-length-")) return FixedLength(*value, type);
    if (type == "variable-length-unsigned-integer") return VariableLength(*value, false);
    if (type == "variable-length-signed-integer") return VariableLength(*value, true);
    if (type == "null-terminated-string") return Add({.kind = CtfKind::kString, .align = 8});
    if (type == "structure") return Structure(*value, depth);
    if (type == "variant") return Variant(*value, depth);
    if (type == "optional") return OptionalField(*value, depth);
    const bool dynamic = type.starts_with("dynamic-length-");
    if (!dynamic && !type.starts_with("static-length-")) return Fail("unknown field class");
    return Array(*value, dynamic, type.ends_with("-array"), depth);
  }

  void Roles(const Json& value, CtfField& field) {
    const Json* roles = Find(value, "roles");
    if (roles == nullptr || !roles->is_array()) return;
    for (const Json& role : *roles) {
      for (const auto& [name, meaning] : kRoles) {
        if (role.is_string() && role.get_ref<const std::string&>() == name) field.role = meaning;
      }
    }
    field.has_clock = field.role == CtfRole::kTimestamp;
  }

  void Labels(const Json& value, CtfField& field) {
    const Json* mappings = Find(value, "mappings");
    if (mappings == nullptr || !mappings->is_object()) return;
    for (const auto& [name, ranges] : mappings->items()) {
      for (const CtfRange& range : Ranges(&ranges)) field.labels.push_back({name, range});
    }
  }

  uint32_t FixedLength(const Json& value, const std::string& type) {
    const bool is_float = type == "fixed-length-floating-point-number";
    CtfField field = {.kind = is_float ? CtfKind::kSkipped : CtfKind::kInteger};
    field.is_signed = type == "fixed-length-signed-integer";
    const bool big = Text(value, "byte-order") == "big-endian";
    field.order = big ? CtfOrder::kBig : CtfOrder::kLittle;
    const std::string bit_order = Text(value, "bit-order");
    field.reversed = !bit_order.empty() && (bit_order == "last-to-first") != big;
    const uint64_t bits = Number(value, "length", 0);
    if (bits == 0 || bits > (is_float ? 1024 : 64)) return Fail("bad length of a number");
    field.bits = static_cast<uint32_t>(bits);
    field.align = Align(value, "alignment");
    Roles(value, field);
    Labels(value, field);
    return Add(std::move(field));
  }

  uint32_t VariableLength(const Json& value, bool is_signed) {
    CtfField field = {.kind = CtfKind::kVarint, .is_signed = is_signed, .align = 8};
    Roles(value, field);
    Labels(value, field);
    return Add(std::move(field));
  }

  uint32_t Structure(const Json& value, int depth) {
    CtfField field = {.kind = CtfKind::kStruct, .align = Align(value, "minimum-alignment")};
    const Json* members = Find(value, "member-classes");
    if (members != nullptr && members->is_array()) {
      for (const Json& member : *members) {
        const uint32_t child = Class(Find(member, "field-class"), depth + 1);
        if (!problem_.empty()) return 0;
        field.align = std::max(field.align, schema_.fields[child].align);
        field.members.push_back({.name = Text(member, "name"), .field = child});
      }
    }
    return Add(std::move(field));
  }

  uint32_t Variant(const Json& value, int depth) {
    CtfField field = {.kind = CtfKind::kVariant};
    field.reference = Reference(Find(value, "selector-field-location"));
    const Json* options = Find(value, "options");
    if (options == nullptr || !options->is_array()) return Fail("variant without options");
    for (const Json& option : *options) {
      const uint32_t child = Class(Find(option, "field-class"), depth + 1);
      if (!problem_.empty()) return 0;
      field.members.push_back({.name = Text(option, "name"),
                               .field = child,
                               .ranges = Ranges(Find(option, "selector-field-ranges"))});
    }
    return Add(std::move(field));
  }

  uint32_t OptionalField(const Json& value, int depth) {
    CtfField field = {.kind = CtfKind::kOptional};
    field.reference = Reference(Find(value, "selector-field-location"));
    field.ranges = Ranges(Find(value, "selector-field-ranges"));
    field.element = Class(Find(value, "field-class"), depth + 1);
    return problem_.empty() ? Add(std::move(field)) : 0;
  }

  // Arrays, and strings and blobs, which are arrays of bytes.
  uint32_t Array(const Json& value, bool dynamic, bool has_elements, int depth) {
    CtfField field = {.kind = CtfKind::kArray, .dynamic = dynamic};
    field.length = Number(value, "length", 0);
    if (dynamic) field.reference = Reference(Find(value, "length-field-location"));
    field.element =
        has_elements
            ? Class(Find(value, "element-field-class"), depth + 1)
            : Add({.kind = CtfKind::kInteger, .order = CtfOrder::kLittle, .bits = 8, .align = 8});
    if (!problem_.empty()) return 0;
    field.align = std::max(Align(value, "minimum-alignment"), schema_.fields[field.element].align);
    return Add(std::move(field));
  }

  CtfSchema& schema_;
  std::map<std::string, uint32_t, std::less<>> aliases_;
  std::string problem_;
};

}  // namespace

CtfSchema ParseCtfJson(std::string_view text, Diagnostics& diagnostics) {
  CtfSchema schema;
  schema.major = 2;
  FragmentReader reader(schema);
  size_t at = text.find('\x1e');
  while (at < text.size()) {
    const size_t end = std::min(text.find('\x1e', at + 1), text.size());
    const std::string_view piece = text.substr(at + 1, end - at - 1);
    const bool blank = piece.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (!blank && (piece.size() > kMaxFragmentBytes || TooDeep(piece))) {
      diagnostics.Count("metadata fragment beyond all bounds", 1, at);
    } else if (!blank) {
      const Json fragment = Json::parse(piece, nullptr, false);
      const std::string problem = fragment.is_discarded() ? "not JSON" : reader.Read(fragment);
      if (!problem.empty()) {
        diagnostics.Count("metadata fragment that makes no sense: " + problem, 1, at);
      }
    }
    at = end;
  }
  return schema;
}

}  // namespace culprit::import_

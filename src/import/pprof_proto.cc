// SPDX-License-Identifier: Apache-2.0
//
// profile.proto, read by hand: a message of at most 15 fields, none nested
// deeper than two. Fields may come in any order, so strings and ids are
// resolved after everything was read.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/bytes.h"
#include "import/pprof_profile.h"

namespace culprit::import_ {
namespace {

constexpr std::string_view kBadMessage = "message of a profile that could not be read";
constexpr std::string_view kBadReference = "reference of a profile to something that is not there";

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;      // of a varint
  std::string_view bytes;  // of a message, a string or packed numbers
};

// The next field; nothing at the end or where the bytes make no sense.
std::optional<Field> Next(ByteReader& reader) {
  if (reader.remaining() == 0) return std::nullopt;
  Field field;
  const uint64_t tag = reader.Varint();
  field.number = tag >> 3;
  field.wire = static_cast<Wire>(tag & 7);
  switch (field.wire) {
    case Wire::kVarint:
      field.value = reader.Varint();
      break;
    case Wire::kFixed64:
      field.value = reader.U64();
      break;
    case Wire::kFixed32:
      field.value = reader.U32();
      break;
    case Wire::kBytes:
      field.bytes = reader.String();
      break;
    default:
      (void)reader.Bytes(SIZE_MAX);  // groups: nobody writes them
  }
  if (reader.failed() || field.number == 0) {
    (void)reader.Bytes(SIZE_MAX);
    return std::nullopt;
  }
  return field;
}

// Takes every field of a message; false if it ends in the middle of one.
template <class Take>
bool ForEachField(std::string_view message, const Take& take) {
  ByteReader reader(message);
  while (const auto field = Next(reader)) take(*field);
  return !reader.failed();
}

// Repeated numbers come one by one or packed.
template <class Take>
void ForEachNumber(const Field& field, const Take& take) {
  if (field.wire != Wire::kBytes) return take(field.value);
  ByteReader reader(field.bytes);
  while (reader.remaining() > 0) {
    const uint64_t value = reader.Varint();
    if (reader.failed()) return;
    take(value);
  }
}

class ProfileReader {
 public:
  ProfileReader(std::string bytes, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    profile_.text = std::make_unique<const std::string>(std::move(bytes));
  }

  Profile Read() && {
    const std::string_view text = *profile_.text;
    // Strings first: everything else names them by number.
    (void)ForEachField(text, [&](const Field& field) {
      if (field.number == 6) strings_.push_back(field.bytes);
    });
    if (!ForEachField(text, [&](const Field& field) { Top(field); }))
      Bad(text.data() + text.size());
    Resolve();
    return std::move(profile_);
  }

 private:
  struct Reference {
    uint64_t mapping = 0;
    uint64_t input_offset = 0;
  };

  uint64_t OffsetOf(const char* at) const {
    return static_cast<uint64_t>(at - profile_.text->data());
  }
  void Bad(const char* at) { diagnostics_.Count(kBadMessage, 1, OffsetOf(at)); }
  std::string_view Text(uint64_t index) {
    if (index < strings_.size()) return strings_[index];
    diagnostics_.Count(kBadReference);
    return {};
  }

  void Top(const Field& field) {
    bool good = true;
    const bool message = field.number <= 5 || field.number == 11;
    if (message && field.wire != Wire::kBytes) return diagnostics_.Count(kBadMessage);
    switch (field.number) {
      case 1:
        profile_.value_types.push_back(ReadValueType(field.bytes));
        break;
      case 2:
        good = ReadSample(field.bytes);
        break;
      case 3:
        good = ReadMapping(field.bytes);
        break;
      case 4:
        good = ReadLocation(field.bytes);
        break;
      case 5:
        good = ReadFunction(field.bytes);
        break;
      case 9:
        profile_.time_ns = static_cast<int64_t>(field.value);
        break;
      case 10:
        profile_.duration_ns = static_cast<int64_t>(field.value);
        break;
      case 11:
        profile_.period_type = ReadValueType(field.bytes);
        break;
      case 12:
        profile_.period = static_cast<int64_t>(field.value);
        break;
      case 14:
        profile_.default_type = Text(field.value);
        break;
      default:
        break;
    }
    if (!good) Bad(field.bytes.data());
  }

  Profile::ValueType ReadValueType(std::string_view message) {
    Profile::ValueType type;
    (void)ForEachField(message, [&](const Field& field) {
      if (field.number == 1) type.type = Text(field.value);
      if (field.number == 2) type.unit = Text(field.value);
    });
    return type;
  }

  bool ReadSample(std::string_view message) {
    Profile::Sample sample;
    sample.first_location = sample_ids_.size();
    sample.first_value = profile_.values.size();
    sample.input_offset = OffsetOf(message.data());
    const bool good = ForEachField(message, [&](const Field& field) {
      if (field.number == 1) ForEachNumber(field, [&](uint64_t id) { sample_ids_.push_back(id); });
      if (field.number == 2) {
        ForEachNumber(
            field, [&](uint64_t value) { profile_.values.push_back(static_cast<int64_t>(value)); });
      }
    });
    sample.locations = static_cast<uint32_t>(sample_ids_.size() - sample.first_location);
    sample.value_count = static_cast<uint32_t>(profile_.values.size() - sample.first_value);
    if (good) profile_.samples.push_back(sample);
    return good;
  }

  bool ReadMapping(std::string_view message) {
    Profile::Mapping mapping;
    uint64_t id = 0;
    const bool good = ForEachField(message, [&](const Field& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) mapping.start = field.value;
      if (field.number == 3) mapping.limit = field.value;
      if (field.number == 4) mapping.offset = field.value;
      if (field.number == 5) mapping.path = Text(field.value);
      if (field.number == 6) mapping.build_id = Text(field.value);
    });
    if (!good) return false;
    mapping_ids_.emplace(id, static_cast<uint32_t>(profile_.mappings.size()));
    profile_.mappings.push_back(mapping);
    return true;
  }

  bool ReadLine(std::string_view message, std::vector<Profile::Line>& lines) {
    uint64_t function = 0;
    Profile::Line line;
    const bool good = ForEachField(message, [&](const Field& field) {
      if (field.number == 1) function = field.value;
      if (field.number == 2 && field.value <= UINT32_MAX) {
        line.line = static_cast<uint32_t>(field.value);
      }
    });
    if (!good) return false;
    lines.push_back(line);
    line_functions_.push_back(function);
    return true;
  }

  bool ReadLocation(std::string_view message) {
    Profile::Location location;
    Reference reference{.input_offset = OffsetOf(message.data())};
    uint64_t id = 0;
    const size_t lines_before = line_functions_.size();
    bool lines_good = true;
    const bool good = ForEachField(message, [&](const Field& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) reference.mapping = field.value;
      if (field.number == 3) location.address = field.value;
      if (field.number == 4) lines_good = ReadLine(field.bytes, location.lines) && lines_good;
    });
    if (!good || !lines_good) {
      line_functions_.resize(lines_before);
      return false;
    }
    location_ids_.emplace(id, static_cast<uint32_t>(profile_.locations.size()));
    profile_.locations.push_back(std::move(location));
    references_.push_back(reference);
    return true;
  }

  bool ReadFunction(std::string_view message) {
    Profile::Function function;
    uint64_t id = 0;
    std::string_view system_name;
    const bool good = ForEachField(message, [&](const Field& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) function.name = Text(field.value);
      if (field.number == 3) system_name = Text(field.value);
      if (field.number == 4) function.file = Text(field.value);
    });
    if (!good) return false;
    if (function.name.empty()) function.name = system_name;
    function_ids_.emplace(id, static_cast<uint32_t>(profile_.functions.size()));
    profile_.functions.push_back(function);
    return true;
  }

  using Ids = std::unordered_map<uint64_t, uint32_t>;
  uint32_t IndexOf(const Ids& ids, uint64_t id, uint64_t offset) {
    const auto it = ids.find(id);
    if (it != ids.end()) return it->second;
    if (id != 0) diagnostics_.Count(kBadReference, 1, offset);
    return Profile::kNone;
  }

  void Resolve() {
    size_t line_index = 0;
    for (size_t i = 0; i < profile_.locations.size(); ++i) {
      Profile::Location& location = profile_.locations[i];
      location.mapping = IndexOf(mapping_ids_, references_[i].mapping, references_[i].input_offset);
      for (Profile::Line& line : location.lines) {
        line.function =
            IndexOf(function_ids_, line_functions_[line_index++], references_[i].input_offset);
      }
    }
    for (Profile::Sample& sample : profile_.samples) {
      const size_t first = profile_.stack_locations.size();
      for (uint32_t i = 0; i < sample.locations; ++i) {
        const uint32_t index =
            IndexOf(location_ids_, sample_ids_[sample.first_location + i], sample.input_offset);
        if (index != Profile::kNone) profile_.stack_locations.push_back(index);
      }
      sample.first_location = first;
      sample.locations = static_cast<uint32_t>(profile_.stack_locations.size() - first);
    }
  }

  Diagnostics& diagnostics_;
  Profile profile_;
  std::vector<std::string_view> strings_;
  std::vector<uint64_t> sample_ids_;
  std::vector<uint64_t> line_functions_;  // of all lines of all locations
  std::vector<Reference> references_;     // beside profile_.locations
  Ids mapping_ids_;
  Ids location_ids_;
  Ids function_ids_;
};

// A ValueType holds two small numbers and nothing else; that is what tells a
// profile from other protobufs.
bool IsValueType(std::string_view message) {
  bool good = !message.empty();
  return ForEachField(message,
                      [&](const Field& field) {
                        good = good && field.wire == Wire::kVarint && field.number <= 2 &&
                               field.value < (uint64_t{1} << 32);
                      }) &&
         good;
}

bool IsNumberField(uint64_t number) {
  return (number >= 7 && number <= 10) || number == 12 || number == 13 || number == 14 ||
         number == 15;
}

}  // namespace

bool LooksLikePprofProto(std::string_view head) {
  ByteReader reader(head);
  size_t fields = 0;
  bool types = false;
  while (const auto field = Next(reader)) {
    const bool numbers = IsNumberField(field->number);
    if (field->number > 15 || (!numbers && field->wire != Wire::kBytes)) return false;
    if (numbers && field->wire != Wire::kVarint && field->number != 13) return false;
    if (field->number == 1 || field->number == 11) {
      if (!IsValueType(field->bytes)) return false;
      types = true;
    }
    ++fields;
  }
  return types && fields >= 3;  // the head may end in the middle of a field
}

Result<Profile> ReadPprofProto(std::string bytes, const std::string& name,
                               Diagnostics& diagnostics) {
  Profile profile = ProfileReader(std::move(bytes), diagnostics).Read();
  if (profile.value_types.empty() || profile.samples.empty()) {
    return Error{.message = "a profile without samples", .file = name};
  }
  return profile;
}

}  // namespace culprit::import_

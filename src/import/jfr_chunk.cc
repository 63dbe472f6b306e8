// SPDX-License-Identifier: Apache-2.0
#include "import/jfr_chunk.h"

#include <charconv>

#include "import/perf_data_layout.h"

namespace culprit::import_ {
namespace {

constexpr int kMaxJfrNesting = 16;   // of structures in structures
constexpr int kMaxJfrElements = 64;  // of elements in elements
constexpr size_t kMaxJfrClasses = 100'000;
constexpr int64_t kMaxTicksPerSecond = 9'000'000'000;

enum class JfrPrimitive : uint8_t { kNone, kByte, kShort, kInt, kLong, kFloat, kDouble, kString };

JfrPrimitive JfrPrimitiveOf(std::string_view name) {
  if (name == "boolean" || name == "byte") return JfrPrimitive::kByte;
  if (name == "short" || name == "char") return JfrPrimitive::kShort;
  if (name == "int") return JfrPrimitive::kInt;
  if (name == "long") return JfrPrimitive::kLong;
  if (name == "float") return JfrPrimitive::kFloat;
  if (name == "double") return JfrPrimitive::kDouble;
  if (name == "java.lang.String") return JfrPrimitive::kString;
  return JfrPrimitive::kNone;
}

int64_t AttributeNumber(std::string_view text) {
  int64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The tree of the metadata: elements with attributes, all names in one table.
class MetadataTree {
 public:
  MetadataTree(std::string_view fields, bool compressed,
               std::unordered_map<int64_t, JfrClass>& classes)
      : reader_(fields, compressed), classes_(classes) {}

  bool Read() {
    for (int i = 0; i < 3; ++i) (void)reader_.Long();  // time, duration, id
    const size_t count = reader_.Count();
    for (size_t i = 0; i < count && !reader_.failed(); ++i) {
      strings_.push_back(reader_.String().text);
    }
    return Element(nullptr, 0) && !reader_.failed();
  }

 private:
  std::string_view Text() {
    const int64_t index = reader_.Int();
    const bool there = index >= 0 && static_cast<size_t>(index) < strings_.size();
    return there ? std::string_view(strings_[static_cast<size_t>(index)]) : std::string_view();
  }

  // `parent`: the class it is inside, if any.
  bool Element(JfrClass* parent, int depth) {
    if (depth > kMaxJfrElements) return false;
    const std::string_view element = Text();
    JfrField field;
    int64_t id = -1;
    const size_t attributes = reader_.Count();
    for (size_t i = 0; i < attributes && !reader_.failed(); ++i) {
      const std::string_view key = Text();
      const std::string_view value = Text();
      if (key == "name") field.name = value;
      if (key == "id") id = AttributeNumber(value);
      if (key == "class") field.class_id = AttributeNumber(value);
      if (key == "constantPool") field.pooled = value == "true";
      if (key == "dimension") field.array = AttributeNumber(value) > 0;
    }
    JfrClass* inside = nullptr;
    if (element == "class" && id >= 0 && classes_.size() < kMaxJfrClasses) {
      inside = &classes_[id];
      *inside = {.name = field.name};
    } else if (element == "field" && parent != nullptr) {
      parent->fields.push_back(field);
    }
    const size_t children = reader_.Count();
    for (size_t i = 0; i < children && !reader_.failed(); ++i) {
      if (!Element(inside, depth + 1)) return false;
    }
    return !reader_.failed();
  }

  JfrReader reader_;
  std::unordered_map<int64_t, JfrClass>& classes_;
  std::vector<std::string> strings_;
};

}  // namespace

std::optional<JfrChunkHead> ReadJfrChunkHead(std::string_view bytes) {
  if (bytes.size() < kJfrHeadBytes || !bytes.starts_with(kJfrMagic)) return std::nullopt;
  FieldReader reader(bytes, true);
  reader.Skip(kJfrMagic.size());
  JfrChunkHead head;
  head.major = reader.U16();
  reader.Skip(2);
  head.size = reader.U64();
  reader.Skip(8);
  head.metadata_offset = reader.U64();
  head.start_ns = static_cast<int64_t>(reader.U64());
  head.dur_ns = static_cast<int64_t>(reader.U64());
  head.start_ticks = static_cast<int64_t>(reader.U64());
  head.ticks_per_second = static_cast<int64_t>(reader.U64());
  head.compressed = (reader.U32() & 1) != 0;
  if (head.ticks_per_second < 1 || head.ticks_per_second > kMaxTicksPerSecond) return std::nullopt;
  return head;
}

std::optional<JfrEvent> ReadJfrEvent(std::string_view chunk, bool compressed, size_t& offset) {
  if (offset >= chunk.size()) return std::nullopt;
  JfrReader reader(chunk.substr(offset), compressed);
  const int64_t size = reader.Int();
  JfrEvent event{.class_id = reader.Long(), .offset = offset};
  const bool fits = !reader.failed() && size >= static_cast<int64_t>(reader.position()) &&
                    static_cast<uint64_t>(size) <= chunk.size() - offset;
  if (!fits) return std::nullopt;
  event.fields =
      chunk.substr(offset + reader.position(), static_cast<size_t>(size) - reader.position());
  offset += static_cast<size_t>(size);
  return event;
}

bool JfrSchema::Add(std::string_view fields, bool compressed) {
  return MetadataTree(fields, compressed, classes_).Read();
}

const JfrClass* JfrSchema::Find(int64_t class_id) const {
  const auto it = classes_.find(class_id);
  return it == classes_.end() ? nullptr : &it->second;
}

bool JfrSchema::SkipOne(JfrReader& reader, int64_t class_id, int depth) const {
  const JfrClass* found = Find(class_id);
  if (found == nullptr || depth > kMaxJfrNesting) return false;
  reader.Step();
  switch (JfrPrimitiveOf(found->name)) {
    case JfrPrimitive::kByte:
      reader.Skip(1);
      break;
    case JfrPrimitive::kShort:
      (void)reader.Short();
      break;
    case JfrPrimitive::kInt:
      (void)reader.Int();
      break;
    case JfrPrimitive::kLong:
      (void)reader.Long();
      break;
    case JfrPrimitive::kFloat:
      reader.Skip(4);
      break;
    case JfrPrimitive::kDouble:
      reader.Skip(8);
      break;
    case JfrPrimitive::kString:
      reader.SkipString();
      break;
    case JfrPrimitive::kNone:
      for (const JfrField& field : found->fields) {
        if (!SkipValue(reader, field, depth + 1)) return false;
      }
      break;
  }
  return !reader.failed();
}

bool JfrSchema::SkipValue(JfrReader& reader, const JfrField& field, int depth) const {
  const size_t count = field.array ? reader.Count() : 1;
  for (size_t i = 0; i < count && !reader.failed(); ++i) {
    if (field.pooled) {
      (void)reader.Long();
    } else if (!SkipOne(reader, field.class_id, depth + 1)) {
      return false;
    }
  }
  return !reader.failed();
}

JfrLayout::JfrLayout(const JfrSchema& schema, int64_t class_id, std::span<const JfrWant> wants)
    : schema_(&schema), class_(schema.Find(class_id)) {
  if (class_ == nullptr) return;
  slots_.assign(class_->fields.size(), kNoSlot);
  for (size_t i = 0; i < slots_.size(); ++i) {
    for (const JfrWant& want : wants) {
      if (class_->fields[i].name != want.field) continue;
      slots_[i] = want.slot;
      has_[want.slot] = true;
      if (want.item.empty() || !class_->fields[i].array) continue;
      items_field_ = i;
      item_ = want.item;
    }
  }
}

bool JfrLayout::ReadItems(JfrReader& reader, const JfrField& field, JfrRow& row) const {
  const JfrClass* element = schema_->Find(field.class_id);
  if (element == nullptr) return false;
  const size_t count = reader.Count();
  for (size_t i = 0; i < count && !reader.failed(); ++i) {
    reader.Step();
    for (const JfrField& member : element->fields) {
      if (member.name == item_ && member.pooled && !member.array) {
        row.items.push_back(reader.Long());
      } else if (!schema_->SkipValue(reader, member)) {
        return false;
      }
    }
  }
  return !reader.failed();
}

bool JfrLayout::ReadField(JfrReader& reader, const JfrField& field, size_t slot,
                          JfrRow& row) const {
  int64_t& number = row.numbers[slot];
  const JfrClass* found = schema_->Find(field.class_id);
  if (field.array || (found == nullptr && !field.pooled)) {
    return schema_->SkipValue(reader, field);
  }
  if (field.pooled) {
    number = reader.Long();
    return !reader.failed();
  }
  switch (JfrPrimitiveOf(found->name)) {
    case JfrPrimitive::kByte:
      number = reader.Byte();
      break;
    case JfrPrimitive::kShort:
      number = reader.Short();
      break;
    case JfrPrimitive::kInt:
      number = reader.Int();
      break;
    case JfrPrimitive::kLong:
      number = reader.Long();
      break;
    case JfrPrimitive::kString:
      row.strings[slot] = reader.String();
      break;
    case JfrPrimitive::kFloat:
    case JfrPrimitive::kDouble:
    case JfrPrimitive::kNone:
      return schema_->SkipValue(reader, field);
  }
  return !reader.failed();
}

bool JfrLayout::Read(JfrReader& reader, JfrRow& row) const {
  row.numbers = {};
  row.items.clear();
  if (class_ == nullptr) return false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const JfrField& field = class_->fields[i];
    bool whole = false;
    if (i == items_field_) {
      whole = ReadItems(reader, field, row);
    } else if (slots_[i] != kNoSlot) {
      row.strings[slots_[i]] = {};
      whole = ReadField(reader, field, slots_[i], row);
    } else {
      whole = schema_->SkipValue(reader, field);
    }
    if (!whole) return false;
  }
  return true;
}

}  // namespace culprit::import_

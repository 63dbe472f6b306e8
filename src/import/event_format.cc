// SPDX-License-Identifier: Apache-2.0
#include "import/event_format.h"

#include <algorithm>
#include <charconv>

#include "import/load_whole.h"

namespace culprit::import_ {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view TrimBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view TakeUntil(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(text.size(), at + 1));
  return part;
}

// Decimal or 0x hexadecimal; nothing if the text does not begin with a digit.
std::optional<uint64_t> Number(std::string_view text) {
  const int base = TakePrefix(text, "0x") ? 16 : 10;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return {};
  return value;
}

// "unsigned int args[6]", "__data_loc char[] name", "char *fmt", "u64 a:3".
void SplitDeclaration(std::string_view declaration, EventField& field) {
  declaration = TrimBlanks(declaration);
  if (TakePrefix(declaration, "__data_loc ")) {
    field.place = EventField::Place::kDataLoc;
  } else if (TakePrefix(declaration, "__rel_loc ")) {
    field.place = EventField::Place::kRelative;
  }
  std::string_view bounds;
  if (declaration.ends_with(']')) {
    const size_t open = declaration.rfind('[');
    if (open != std::string_view::npos) {
      bounds = declaration.substr(open);
      declaration = TrimBlanks(declaration.substr(0, open));
    }
  }
  const size_t cut = declaration.find_last_of(" \t*");
  const size_t name_at = cut == std::string_view::npos ? 0 : cut + 1;
  field.name = declaration.substr(name_at);
  field.type = std::string(TrimBlanks(declaration.substr(0, name_at))) + std::string(bounds);
  field.is_array = !bounds.empty() || field.place != EventField::Place::kInline;
}

// One line, from after "field:" or "field special:".
std::optional<EventField> ParseField(std::string_view line) {
  EventField field;
  SplitDeclaration(TakeUntil(line, ';'), field);
  if (field.name.empty()) return {};
  bool has_offset = false;
  while (!line.empty()) {
    std::string_view part = TrimBlanks(TakeUntil(line, ';'));
    const std::string_view key = TakeUntil(part, ':');
    const std::optional<uint64_t> value = Number(part);
    if (!value.has_value() || *value > UINT32_MAX) continue;
    const auto number = static_cast<uint32_t>(*value);
    if (key == "offset") {
      field.offset = number;
      has_offset = true;
    } else if (key == "size") {
      field.size = number;
    } else if (key == "signed") {
      field.is_signed = number != 0;
    }
  }
  if (!has_offset) return {};
  return field;
}

std::optional<EventField> FieldOfLine(std::string_view line) {
  if (!TakePrefix(line, "field")) return {};
  TakePrefix(line, " special");
  if (!TakePrefix(line, ":")) return {};
  return ParseField(line);
}

}  // namespace

uint64_t LoadUnsigned(std::string_view bytes, size_t offset, size_t size, ByteOrder order) {
  if (size == 0 || size > 8 || offset > bytes.size() || bytes.size() - offset < size) return 0;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data()) + offset;
  const bool big = order == ByteOrder::kBig;
  if (size == 4) return LoadWhole<uint32_t>(at, big);
  if (size == 8) return LoadWhole<uint64_t>(at, big);
  if (size == 2) return LoadWhole<uint16_t>(at, big);
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = value << 8 | at[big ? i : size - 1 - i];
  }
  return value;
}

int64_t LoadSigned(std::string_view bytes, size_t offset, size_t size, ByteOrder order) {
  const uint64_t value = LoadUnsigned(bytes, offset, size, order);
  if (size == 0 || size >= 8) return static_cast<int64_t>(value);
  const uint64_t sign = uint64_t{1} << (size * 8 - 1);
  return static_cast<int64_t>((value ^ sign) - sign);
}

const EventField* EventFormat::Find(std::string_view field) const {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const EventField& each) { return each.name == field; });
  return it == fields.end() ? nullptr : &*it;
}

std::vector<EventField> ParseFields(std::string_view text) {
  std::vector<EventField> fields;
  while (!text.empty()) {
    std::optional<EventField> field = FieldOfLine(TrimBlanks(TakeUntil(text, '\n')));
    if (field.has_value()) fields.push_back(*std::move(field));
  }
  return fields;
}

std::optional<EventFormat> ParseEventFormat(std::string_view text, std::string_view system) {
  EventFormat format;
  format.system = system;
  bool has_id = false;
  while (!text.empty()) {
    std::string_view line = TrimBlanks(TakeUntil(text, '\n'));
    if (TakePrefix(line, "name:")) {
      format.name = TrimBlanks(line);
    } else if (TakePrefix(line, "ID:")) {
      const std::optional<uint64_t> id = Number(TrimBlanks(line));
      if (!id.has_value() || *id > UINT32_MAX) return {};
      format.id = static_cast<uint32_t>(*id);
      has_id = true;
    } else if (TakePrefix(line, "print fmt:")) {
      format.print = TrimBlanks(line);
    } else if (std::optional<EventField> field = FieldOfLine(line); field.has_value()) {
      format.fields.push_back(*std::move(field));
    }
  }
  if (format.name.empty() || !has_id || format.fields.empty()) return {};
  return format;
}

TaskStates TaskStates::FromPrint(std::string_view print) {
  TaskStates states{.blocked = 0, .dead = 0};
  while (!print.empty()) {
    TakeUntil(print, '{');
    std::string_view pair = TakeUntil(print, '}');
    const std::optional<uint64_t> bits = Number(TrimBlanks(TakeUntil(pair, ',')));
    const std::string_view letter = TrimBlanks(pair);
    // A pair looks like { 0x01, "S" }.
    if (!bits.has_value() || letter.size() != 3 || letter.front() != '"') continue;
    states.blocked |= *bits;
    if (letter[1] == 'X' || letter[1] == 'Z' || letter[1] == 'x') states.dead |= *bits;
  }
  return states.blocked == 0 ? TaskStates() : states;
}

uint64_t RecordView::Unsigned(const EventField* field) const {
  if (field == nullptr) return 0;
  return LoadUnsigned(bytes_, field->offset, field->size, order_);
}

int64_t RecordView::Signed(const EventField* field) const {
  if (field == nullptr) return 0;
  return LoadSigned(bytes_, field->offset, field->size, order_);
}

std::string_view RecordView::Array(const EventField* field) const {
  if (field == nullptr) return {};
  size_t offset = field->offset;
  size_t length = field->size == 0 ? bytes_.size() : field->size;
  if (field->place != EventField::Place::kInline) {
    const uint64_t where = LoadUnsigned(bytes_, offset, 4, order_);
    const size_t origin = field->place == EventField::Place::kRelative ? offset + 4 : 0;
    offset = origin + (where & 0xffff);
    length = where >> 16;
  }
  if (offset > bytes_.size()) return {};
  return bytes_.substr(offset, length);
}

std::string_view RecordView::Text(const EventField* field) const {
  const std::string_view array = Array(field);
  return array.substr(0, array.find('\0'));
}

}  // namespace culprit::import_

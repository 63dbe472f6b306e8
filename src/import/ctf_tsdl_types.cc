// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_tsdl_types.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace culprit::import_ {
namespace {

using TokenKind = CtfToken::Kind;

constexpr std::pair<std::string_view, CtfScope> kScopePrefixes[] = {
    {"trace.packet.header.", CtfScope::kPacketHeader},
    {"stream.packet.context.", CtfScope::kPacketContext},
    {"stream.event.header.", CtfScope::kEventHeader},
    {"stream.event.context.", CtfScope::kCommonContext},
    {"event.context.", CtfScope::kEventContext},
    {"event.fields.", CtfScope::kPayload},
};

}  // namespace

CtfTypeParser::CtfTypeParser(std::string_view text, CtfSchema& schema)
    : lexer_(text), schema_(schema) {
  PushNames();
  token_ = lexer_.Next();
}

void CtfTypeParser::Advance() {
  if (At("{")) ++braces_;
  if (At("}")) --braces_;
  token_ = lexer_.Next();
}

bool CtfTypeParser::Accept(std::string_view word) {
  if (failed() || !At(word)) return false;
  Advance();
  return true;
}

void CtfTypeParser::Expect(std::string_view word) {
  if (!Accept(word)) Fail("'" + std::string(word) + "' expected");
}

void CtfTypeParser::Fail(std::string_view what) {
  if (failed()) return;
  problem_ = what;
  problem_offset_ = token_.offset;
}

void CtfTypeParser::Recover() {
  while (!AtEnd() && !(At(";") && braces_ <= 0)) Advance();
  Advance();
  braces_ = 0;
  depth_ = 0;
  names_.resize(1);
  problem_.clear();
}

uint32_t CtfTypeParser::Add(CtfField field) {
  if (schema_.fields.size() >= kMaxCtfFields) {
    Fail("too many fields");
    return 0;
  }
  return schema_.Add(std::move(field));
}

std::string CtfTypeParser::Path() {
  std::string path;
  do {
    if (token_.kind != TokenKind::kIdentifier) {
      Fail("a name expected");
      return path;
    }
    if (!path.empty()) path += '.';
    path += token_.text;
    Advance();
  } while (Accept("."));
  return path;
}

CtfAssigned CtfTypeParser::Value() {
  CtfAssigned value;
  const bool negative = Accept("-");
  if (!negative) Accept("+");
  if (token_.kind == TokenKind::kNumber) {
    value.is_number = true;
    value.number = negative ? 0 - token_.number : token_.number;
    value.text = (negative ? "-" : "") + std::string(token_.text);
    Advance();
  } else if (token_.kind == TokenKind::kString) {
    value.text = UnescapeCtf(token_.text);
    Advance();
  } else {
    value.text = Path();
  }
  return value;
}

CtfOrder CtfTypeParser::OrderOf(const CtfAssigned& value) {
  if (value.text == "le") return CtfOrder::kLittle;
  if (value.text == "be" || value.text == "network") return CtfOrder::kBig;
  if (value.text != "native") Fail("unknown byte order");
  return CtfOrder::kNative;
}

uint32_t CtfTypeParser::Align(const CtfAssigned& value) {
  if (!value.is_number || !std::has_single_bit(value.number) || value.number > kMaxCtfAlign) {
    Fail("an alignment must be a power of two");
    return 1;
  }
  return static_cast<uint32_t>(value.number);
}

uint32_t CtfTypeParser::Integer() {
  CtfField field = {.kind = CtfKind::kInteger, .align = 0};
  Expect("{");
  while (!failed() && !At("}")) {
    const std::string key = Path();
    Expect("=");
    const CtfAssigned value = Value();
    Expect(";");
    if (key == "size") field.bits = static_cast<uint32_t>(std::min<uint64_t>(value.number, 65));
    if (key == "align") field.align = Align(value);
    if (key == "signed") field.is_signed = value.IsTrue();
    if (key == "byte_order") field.order = OrderOf(value);
    if (key == "map") field.has_clock = true;
  }
  Expect("}");
  if (field.bits == 0 || field.bits > 64) Fail("an integer must have 1 to 64 bits");
  if (field.align == 0) field.align = field.bits % 8 == 0 ? 8 : 1;
  return Add(std::move(field));
}

uint32_t CtfTypeParser::Float() {
  CtfField field = {.kind = CtfKind::kSkipped, .align = 0};
  uint64_t bits = 0;
  Expect("{");
  while (!failed() && !At("}")) {
    const std::string key = Path();
    Expect("=");
    const CtfAssigned value = Value();
    Expect(";");
    if (key == "exp_dig" || key == "mant_dig") bits += std::min<uint64_t>(value.number, 1024);
    if (key == "align") field.align = Align(value);
  }
  Expect("}");
  if (bits == 0 || bits > 1024) Fail("a floating-point number without size");
  field.bits = static_cast<uint32_t>(bits);
  if (field.align == 0) field.align = bits % 8 == 0 ? 8 : 1;
  return Add(std::move(field));
}

uint32_t CtfTypeParser::String() {
  if (Accept("{")) {
    while (!failed() && !At("}")) {
      Path();
      Expect("=");
      Value();
      Expect(";");
    }
    Expect("}");
  }
  return Add({.kind = CtfKind::kString, .align = 8});
}

void CtfTypeParser::AlignClause(CtfField& field) {
  if (!Accept("align")) return;
  Expect("(");
  field.align = std::max(field.align, Align(Value()));
  Expect(")");
}

void CtfTypeParser::Fields(CtfField& parent) {
  Expect("{");
  PushNames();
  while (!failed() && !At("}")) {
    if (At("typealias") || At("typedef")) {
      Declaration();
      continue;
    }
    std::string name;
    const uint32_t type = TypeOrWords(true, &name);
    Declared declared = Declarator(type, std::move(name));
    parent.members.push_back({.name = std::move(declared.name), .field = declared.field});
    while (Accept(",")) {
      declared = Declarator(type, {});
      parent.members.push_back({.name = std::move(declared.name), .field = declared.field});
    }
    Expect(";");
  }
  if (!failed()) PopNames();
  Expect("}");
}

uint32_t CtfTypeParser::Struct() {
  std::string name;
  if (token_.kind == TokenKind::kIdentifier && !At("align")) name = Path();
  if (!At("{")) return Lookup("struct " + name);
  CtfField field = {.kind = CtfKind::kStruct};
  Fields(field);
  AlignClause(field);
  for (const CtfMember& member : field.members) {
    const uint32_t align = failed() ? 1 : schema_.fields[member.field].align;
    field.align = std::max(field.align, align);
  }
  const uint32_t index = Add(std::move(field));
  if (!name.empty()) Define("struct " + name, index);
  return index;
}

uint32_t CtfTypeParser::Variant() {
  std::string name;
  if (token_.kind == TokenKind::kIdentifier) name = Path();
  CtfField field = {.kind = CtfKind::kVariant};
  if (Accept("<")) {
    field.reference = Reference();
    Expect(">");
  }
  if (!At("{")) {
    const uint32_t known = Lookup("variant " + name);
    if (failed() || schema_.fields[known].kind != CtfKind::kVariant) return known;
    if (field.reference.path.empty()) return known;
    field.members = schema_.fields[known].members;
    return Add(std::move(field));
  }
  Fields(field);
  const uint32_t index = Add(std::move(field));
  if (!name.empty()) Define("variant " + name, index);
  return index;
}

void CtfTypeParser::EnumLabels(CtfField& field) {
  Expect("{");
  int64_t next = 0;
  while (!failed() && !At("}")) {
    CtfLabel label = {.name = Value().text, .range = {next, next}};
    if (Accept("=")) {
      label.range.low = static_cast<int64_t>(Value().number);
      label.range.high = label.range.low;
      if (Accept("...")) label.range.high = static_cast<int64_t>(Value().number);
    }
    next = static_cast<int64_t>(static_cast<uint64_t>(label.range.high) + 1);
    field.labels.push_back(std::move(label));
    if (!Accept(",")) break;
  }
  Expect("}");
}

uint32_t CtfTypeParser::Enum() {
  std::string name;
  if (token_.kind == TokenKind::kIdentifier) name = Path();
  uint32_t base = 0;
  if (Accept(":")) {
    base = Type();
  } else if (At("{")) {
    base = Lookup("int");
  } else {
    return Lookup("enum " + name);
  }
  if (failed()) return 0;
  CtfField field = schema_.fields[base];
  if (field.kind != CtfKind::kInteger) Fail("an enumeration is made of integers");
  EnumLabels(field);
  const uint32_t index = Add(std::move(field));
  if (!name.empty()) Define("enum " + name, index);
  return index;
}

uint32_t CtfTypeParser::Lookup(const std::string& name) {
  for (auto scope = names_.rbegin(); scope != names_.rend(); ++scope) {
    const auto it = scope->find(name);
    if (it != scope->end()) return it->second;
  }
  Fail("unknown type");
  return 0;
}

uint32_t CtfTypeParser::Type() { return TypeOrWords(false, nullptr); }

bool CtfTypeParser::KnownType() const {
  static constexpr std::string_view kWords[] = {"integer", "floating_point", "string",
                                                "struct",  "variant",        "enum"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return At(word); });
}

uint32_t CtfTypeParser::TypeOrWords(bool last_is_name, std::string* name) {
  if (failed()) return 0;
  if (depth_ >= kMaxCtfDepth) {
    Fail("types nested too deeply");
    return 0;
  }
  while (Accept("const")) {
  }
  ++depth_;
  uint32_t field = 0;
  if (!KnownType()) {
    std::vector<std::string> words;
    while (token_.kind == TokenKind::kIdentifier && words.size() < 8) {
      if (!At("const")) words.emplace_back(token_.text);
      Advance();
    }
    if (last_is_name && words.size() > 1 && !At("*")) {
      *name = std::move(words.back());
      words.pop_back();
    }
    std::string joined;
    for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
    field = Lookup(joined);
  } else if (Accept("integer")) {
    field = Integer();
  } else if (Accept("floating_point")) {
    field = Float();
  } else if (Accept("string")) {
    field = String();
  } else if (Accept("struct")) {
    field = Struct();
  } else if (Accept("variant")) {
    field = Variant();
  } else if (Accept("enum")) {
    field = Enum();
  }
  --depth_;
  return failed() ? 0 : field;
}

CtfReference CtfTypeParser::Reference() {
  std::string path = Path();
  CtfReference reference;
  for (const auto& [prefix, scope] : kScopePrefixes) {
    if (!path.starts_with(prefix)) continue;
    reference.origin = scope;
    path.erase(0, prefix.size());
    break;
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    reference.path.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return reference;
}

CtfTypeParser::Declared CtfTypeParser::Declarator(uint32_t field, std::string name) {
  while (Accept("*")) {
  }
  if (name.empty()) {
    if (token_.kind != TokenKind::kIdentifier) Fail("a field's name expected");
    name = token_.text;
    Advance();
  }
  std::vector<CtfField> dimensions;
  while (Accept("[")) {
    CtfField array = {.kind = CtfKind::kArray};
    if (token_.kind == TokenKind::kNumber) {
      array.length = token_.number;
      Advance();
    } else {
      array.dynamic = true;
      array.reference = Reference();
    }
    Expect("]");
    dimensions.push_back(std::move(array));
    if (dimensions.size() > 8) Fail("too many dimensions");
  }
  for (auto array = dimensions.rbegin(); array != dimensions.rend() && !failed(); ++array) {
    array->element = field;
    array->align = schema_.fields[field].align;
    field = Add(std::move(*array));
  }
  return {field, std::move(name)};
}

bool CtfTypeParser::Declaration() {
  if (Accept("typealias")) {
    const uint32_t type = Type();
    Expect(":=");
    std::string name;
    while (token_.kind == TokenKind::kIdentifier) {
      if (!At("const")) name += (name.empty() ? "" : " ") + std::string(token_.text);
      Advance();
    }
    if (!failed()) Define(name, type);
  } else if (Accept("typedef")) {
    std::string name;
    const uint32_t type = TypeOrWords(true, &name);
    Declared declared = Declarator(type, std::move(name));
    if (!failed()) Define(declared.name, declared.field);
  } else if (At("struct") || At("variant") || At("enum")) {
    Type();
  } else {
    return false;
  }
  Expect(";");
  return true;
}

}  // namespace culprit::import_

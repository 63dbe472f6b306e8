// SPDX-License-Identifier: Apache-2.0
//
// CtfTypeParser: the half of the TSDL parser that reads types and
// declarations (grammar in ctf_tsdl.h). The other half, blocks with their
// assignments, is built on it (ctf_tsdl.cc). After the first error failed() is
// true and every function returns at once; Recover() goes to the next
// declaration and clears it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/ctf_lexer.h"
#include "import/ctf_schema.h"

namespace culprit::import_ {

// The right side of an assignment: a number, a string, or words with dots.
struct CtfAssigned {
  bool is_number = false;
  uint64_t number = 0;
  std::string text = {};

  bool IsTrue() const { return is_number ? number != 0 : text == "true" || text == "TRUE"; }
};

class CtfTypeParser {
 public:
  CtfTypeParser(std::string_view text, CtfSchema& schema);

  const CtfToken& token() const { return token_; }
  void Advance();
  bool At(std::string_view word) const { return token_.Is(word); }
  bool AtEnd() const { return token_.kind == CtfToken::Kind::kEnd; }
  bool Accept(std::string_view word);
  void Expect(std::string_view word);
  void Fail(std::string_view what);
  bool failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }
  uint64_t problem_offset() const { return problem_offset_; }
  void Recover();

  CtfAssigned Value();
  // Words joined by dots: "packet.header".
  std::string Path();
  // A type alone, as after ":=".
  uint32_t Type();
  // typealias, typedef, or a named struct, variant or enum; false if none is here.
  bool Declaration();
  void PushNames() { names_.emplace_back(); }
  void PopNames() { names_.pop_back(); }

 private:
  struct Declared {
    uint32_t field = 0;
    std::string name;
  };

  uint32_t TypeOrWords(bool last_is_name, std::string* name);
  uint32_t Integer();
  uint32_t Float();
  uint32_t String();
  uint32_t Struct();
  uint32_t Variant();
  uint32_t Enum();
  void EnumLabels(CtfField& field);
  void Fields(CtfField& parent);
  void AlignClause(CtfField& field);
  Declared Declarator(uint32_t field, std::string name);
  CtfReference Reference();
  bool KnownType() const;
  uint32_t Lookup(const std::string& name);
  void Define(const std::string& name, uint32_t field) { names_.back()[name] = field; }
  uint32_t Add(CtfField field);
  CtfOrder OrderOf(const CtfAssigned& value);
  uint32_t Align(const CtfAssigned& value);

  CtfLexer lexer_;
  CtfSchema& schema_;
  CtfToken token_;
  std::vector<std::map<std::string, uint32_t, std::less<>>> names_;
  int braces_ = 0;
  int depth_ = 0;
  std::string problem_;
  uint64_t problem_offset_ = 0;
};

}  // namespace culprit::import_

// SPDX-License-Identifier: Apache-2.0
#include "stackmine/signature.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json_writer.h"

namespace culprit::stackmine {
namespace {

using nlohmann::json;

constexpr int64_t kVersion = 1;

void WriteFrames(JsonWriter& out, const FrameNames& frames) {
  out.BeginArray();
  for (const std::string& frame : frames) out.String(frame);
  out.EndArray();
}

// The library throws on a wrong type; a hand-edited file must not end us.
std::string Text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<FrameNames> Frames(const json& array) {
  if (!array.is_array()) return std::nullopt;
  FrameNames frames;
  for (const json& frame : array) {
    if (!frame.is_string()) return std::nullopt;
    frames.push_back(frame.get<std::string>());
  }
  return frames;
}

void ReadSightings(const json& object, Signature& signature) {
  const auto seen = object.find("seen");
  if (seen == object.end() || !seen->is_array()) return;
  for (const json& row : *seen) {
    if (!row.is_object()) continue;
    signature.seen.push_back({.app = Text(row, "app"),
                              .version = Text(row, "version"),
                              .first = Text(row, "first"),
                              .last = Text(row, "last")});
  }
}

// Empty: it is one. Otherwise what is wrong with it.
std::string ParseSignature(const json& object, Signature& signature) {
  if (!object.is_object()) return "is no object";
  signature.name = Text(object, "name");
  if (signature.name.empty()) return "has no name";
  const std::string kind = Text(object, "kind");
  if (kind != Name(StackKind::kWait) && kind != Name(StackKind::kRun)) {
    return "has a kind other than wait and run";
  }
  signature.kind = kind == Name(StackKind::kWait) ? StackKind::kWait : StackKind::kRun;
  const auto status = ParseSignatureStatus(Text(object, "status"));
  if (!status) return "has a status other than new, known, fixed and ignored";
  signature.status = *status;
  signature.owner = Text(object, "owner");
  signature.note = Text(object, "note");
  signature.cluster = Text(object, "cluster");
  signature.source = Text(object, "source");
  signature.added = Text(object, "added");
  ReadSightings(object, signature);
  const auto patterns = object.find("patterns");
  if (patterns == object.end() || !patterns->is_array()) return "has no patterns";
  for (const json& pattern : *patterns) {
    auto frames = Frames(pattern);
    if (!frames || frames->empty()) return "has a pattern that is no list of frames";
    signature.patterns.push_back(std::move(*frames));
  }
  if (signature.patterns.empty()) return "has no patterns";
  if (const auto common = object.find("common"); common != object.end()) {
    signature.common = Frames(*common).value_or(FrameNames());
  }
  return {};
}

}  // namespace

std::optional<SignatureStatus> ParseSignatureStatus(std::string_view text) {
  for (size_t i = 0; i < kSignatureStatusNames.size(); ++i) {
    if (text == kSignatureStatusNames[i]) return static_cast<SignatureStatus>(i);
  }
  return std::nullopt;
}

std::string SignaturesToJson(const std::vector<Signature>& signatures) {
  JsonWriter out;
  out.BeginObject().Field("culprit_signatures", kVersion);
  out.Key("signatures").BeginArray();
  for (const Signature& s : signatures) {
    out.BeginObject().Field("name", std::string_view(s.name)).Field("kind", Name(s.kind));
    out.Field("status", Name(s.status)).Field("owner", std::string_view(s.owner));
    out.Field("note", std::string_view(s.note)).Field("cluster", std::string_view(s.cluster));
    out.Field("source", std::string_view(s.source)).Field("added", std::string_view(s.added));
    out.Key("common");
    WriteFrames(out, s.common);
    out.Key("patterns").BeginArray();
    for (const FrameNames& pattern : s.patterns) WriteFrames(out, pattern);
    out.EndArray().Key("seen").BeginArray();
    for (const Sighting& seen : s.seen) {
      out.BeginObject().Field("app", std::string_view(seen.app));
      out.Field("version", std::string_view(seen.version));
      out.Field("first", std::string_view(seen.first));
      out.Field("last", std::string_view(seen.last)).EndObject();
    }
    out.EndArray().EndObject();
  }
  out.EndArray().EndObject();
  return out.Take() + "\n";
}

Result<std::vector<Signature>> SignaturesFromJson(const std::string& text,
                                                  const std::string& file) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&](const std::string& what) {
    return Error{.message = what,
                 .file = file,
                 .hint = "mend the file by hand or choose another with --store"};
  };
  if (!document.is_object() || !document.contains("signatures") ||
      !document["signatures"].is_array()) {
    return bad("is no signature store: no JSON object with \"signatures\"");
  }
  const auto version = document.find("culprit_signatures");
  if (version == document.end() || !version->is_number_integer()) {
    return bad("is no signature store: no version");
  }
  if (version->get<int64_t>() > kVersion) {
    return Error{.message = "was written by a later version of the program",
                 .file = file,
                 .hint = "use that version"};
  }
  std::vector<Signature> signatures;
  for (const json& object : document["signatures"]) {
    Signature& signature = signatures.emplace_back();
    const std::string wrong = ParseSignature(object, signature);
    if (!wrong.empty()) {
      return bad("signature " + std::to_string(signatures.size()) + " " + wrong);
    }
  }
  return signatures;
}

void NoteSighting(Signature& signature, const std::string& app, const std::string& version,
                  const std::string& day) {
  const auto found =
      std::find_if(signature.seen.begin(), signature.seen.end(),
                   [&](const Sighting& s) { return s.app == app && s.version == version; });
  if (found == signature.seen.end()) {
    signature.seen.push_back({.app = app, .version = version, .first = day, .last = day});
    std::sort(signature.seen.begin(), signature.seen.end(),
              [](const Sighting& a, const Sighting& b) {
                return std::tie(a.app, a.version) < std::tie(b.app, b.version);
              });
    return;
  }
  found->first = std::min(found->first, day);
  found->last = std::max(found->last, day);
}

std::string FreeName(const std::vector<Signature>& signatures, const std::string& wanted) {
  std::string name = wanted;
  const auto taken = [&] {
    return std::any_of(signatures.begin(), signatures.end(),
                       [&](const Signature& s) { return s.name == name; });
  };
  for (int i = 2; taken(); ++i) name = wanted + "-" + std::to_string(i);
  return name;
}

FrameNames ParseFrames(std::string_view text) {
  FrameNames frames;
  while (!text.empty()) {
    std::string_view frame = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), frame.size() + 1));
    while (frame.starts_with(' ')) frame.remove_prefix(1);
    while (frame.ends_with(' ')) frame.remove_suffix(1);
    if (!frame.empty()) frames.emplace_back(frame);
  }
  return frames;
}

}  // namespace culprit::stackmine

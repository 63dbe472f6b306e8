// SPDX-License-Identifier: Apache-2.0
#include "analyze/part.h"
#include "base/json_writer.h"

namespace culprit::analyze {

Part SignaturesPart(const Analysis& analysis) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Key("signatures").BeginArray();
  for (size_t s = 0; s < analysis.signatures.size(); ++s) {
    const stackmine::Signature& signature = analysis.signatures[s];
    json.BeginObject().Field("name", std::string_view(signature.name));
    json.Field("kind", Name(signature.kind)).Field("status", Name(signature.status));
    json.Field("owner", std::string_view(signature.owner));
    json.Field("note", std::string_view(signature.note)).Key("common").BeginArray();
    for (const std::string& frame : signature.common) json.String(frame);
    json.EndArray().Key("clusters").BeginArray();
    int64_t time_ns = 0;
    for (size_t i = 0; i < analysis.known.size(); ++i) {
      if (analysis.known[i].signature != s) continue;
      json.String(analysis.mined.clusters[i].id);
      time_ns += analysis.mined.clusters[i].gain_ns;
    }
    json.EndArray().Field("time_ns", time_ns).EndObject();
  }
  json.EndArray().EndObject();
  return {.name = "signatures", .json = json.Take()};
}

}  // namespace culprit::analyze

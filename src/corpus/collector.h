// SPDX-License-Identifier: Apache-2.0
//
// Collector: an analysis that wants something from every trace of a corpus, as
// the loop over the traces (gather.h) sees it. From each trace it takes a piece;
// pieces can be kept as summaries and are added up in the order of the catalog.
//
// A piece must not depend on the trace's name (the same content may be in the
// corpus under another one), only on the trace and on what summary() says. What
// Decode gives for the bytes of Encode must be indistinguishable from the piece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "corpus/summary_store.h"
#include "corpus/trace_views.h"

namespace culprit::corpus {

struct GatherReport;

struct Piece {
  virtual ~Piece() = default;
};

class Collector {
 public:
  virtual ~Collector() = default;

  virtual const SummaryKind& summary() const = 0;
  // Memory that Extract needs, about, with the trace's own.
  virtual uint64_t bytes_an_event() const = 0;

  // Called from several threads.
  virtual std::unique_ptr<Piece> Extract(TraceViews& views) const = 0;
  virtual std::string Encode(const Piece& piece) const = 0;
  // Null for bytes that are no piece.
  virtual std::unique_ptr<Piece> Decode(std::string_view bytes) const = 0;

  // Called in the order of the catalog, never two at a time.
  virtual void Add(std::unique_ptr<Piece> piece, const std::string& trace_name) = 0;
  // A trace that could not be read: its name and why.
  virtual void AddUnreadable(const std::string& line) = 0;
  // At the end: what became of the sum.
  virtual void Report(GatherReport&) const {}
};

// A Collector of parts of one type; what is left to write are the functions.
template <class Part>
class PartCollector : public Collector {
 public:
  explicit PartCollector(SummaryKind kind) : kind_(std::move(kind)) {}

  const SummaryKind& summary() const final { return kind_; }
  std::unique_ptr<Piece> Extract(TraceViews& views) const final {
    return std::make_unique<Holder>(ExtractPart(views));
  }
  std::string Encode(const Piece& piece) const final {
    return EncodePart(static_cast<const Holder&>(piece).part);
  }
  std::unique_ptr<Piece> Decode(std::string_view bytes) const final {
    std::optional<Part> part = DecodePart(bytes);
    return part ? std::make_unique<Holder>(std::move(*part)) : nullptr;
  }
  void Add(std::unique_ptr<Piece> piece, const std::string& trace_name) final {
    AddPart(std::move(static_cast<Holder&>(*piece).part), trace_name);
  }

 protected:
  virtual Part ExtractPart(TraceViews& views) const = 0;
  virtual std::string EncodePart(const Part& part) const = 0;
  virtual std::optional<Part> DecodePart(std::string_view bytes) const = 0;
  virtual void AddPart(Part part, const std::string& trace_name) = 0;

 private:
  struct Holder : Piece {
    explicit Holder(Part part_in) : part(std::move(part_in)) {}
    Part part;
  };
  const SummaryKind kind_;
};

}  // namespace culprit::corpus

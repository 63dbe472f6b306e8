// SPDX-License-Identifier: Apache-2.0
#include "push/anonymize.h"

#include <vector>

#include "base/file.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::push {
namespace {

using trace::Dictionary;
using trace::Event;
using trace::EventKind;
using trace::Frame;
using trace::FrameId;
using trace::Module;
using trace::ModuleId;
using trace::StackId;

// All that may tell a user's or the machine's name, before the first text is
// changed: a name learnt late would stand in what was written early.
void Learn(const trace::TraceReader& reader, Pseudonyms& pseudonyms) {
  pseudonyms.AddHost(reader.metadata().machine);
  const Dictionary& from = reader.dictionary();
  for (const Module& module : from.modules()) pseudonyms.LearnFromPath(from.Text(module.path));
  for (const Frame& frame : from.frames()) pseudonyms.LearnFromPath(from.Text(frame.file));
  for (const trace::Process& process : from.processes()) {
    pseudonyms.LearnFromPath(from.Text(process.command_line));
  }
}

// The dictionary with other texts. Frames that become equal become one; ids of
// processes and threads stay.
class NewDictionary {
 public:
  NewDictionary(const Dictionary& from, Pseudonyms& pseudonyms, Dictionary& to)
      : from_(from), pseudonyms_(pseudonyms), to_(to) {
    std::vector<ModuleId> modules;
    for (const Module& module : from.modules()) {
      modules.push_back(to.InternModule({.name = Same(module.name),
                                         .path = Path(module.path),
                                         .build_id = Same(module.build_id)}));
    }
    std::vector<FrameId> frames;
    for (Frame frame : from.frames()) {
      if (frame.module.valid()) frame.module = modules[frame.module.value];
      frame.function = Same(frame.function);
      frame.file = Path(frame.file);
      frames.push_back(to.InternFrame(frame));
    }
    for (const trace::StackNode& node : from.stacks()) {
      stacks_.push_back(to.InternStack(Map(node.parent), frames[node.frame.value]));
    }
    CopyThreads();
  }

  StackId Map(StackId stack) const { return stack.valid() ? stacks_[stack.value] : stack; }
  StringId Text(StringId text) {
    return text.valid() ? to_.Intern(pseudonyms_.Text(from_.Text(text))) : text;
  }

 private:
  void CopyThreads() {
    for (trace::Process process : from_.processes()) {
      process.name = Text(process.name);
      process.command_line = Changed(process.command_line, &Pseudonyms::CommandLine);
      process.cgroup = Changed(process.cgroup, &Pseudonyms::Cgroup);
      to_.AddProcess(process);
    }
    for (trace::Thread thread : from_.threads()) {
      thread.name = Text(thread.name);
      to_.AddThread(thread);
    }
  }
  StringId Same(StringId text) { return text.valid() ? to_.Intern(from_.Text(text)) : text; }
  StringId Path(StringId text) { return Changed(text, &Pseudonyms::Path); }
  StringId Changed(StringId text, std::string (Pseudonyms::*change)(std::string_view)) {
    return text.valid() ? to_.Intern((pseudonyms_.*change)(from_.Text(text))) : text;
  }

  const Dictionary& from_;
  Pseudonyms& pseudonyms_;
  Dictionary& to_;
  std::vector<StackId> stacks_;
};

void ChangeMetadata(Pseudonyms& pseudonyms, trace::Metadata& metadata) {
  metadata.machine = pseudonyms.Host(metadata.machine);
  metadata.app = pseudonyms.Path(metadata.app);
  for (auto& [key, value] : metadata.labels) value = pseudonyms.Text(value);
  for (auto& [key, value] : metadata.properties) {
    value = key == "command_line" ? pseudonyms.CommandLine(value) : pseudonyms.Text(value);
  }
}

Status CopyEvents(const trace::TraceReader& reader, NewDictionary& names,
                  trace::TraceWriter& writer) {
  std::vector<Event> events;
  uint64_t damaged = 0;
  for (size_t block = 0; block < reader.blocks().size(); ++block) {
    if (!reader.ReadBlock(block, events).ok()) {
      ++damaged;
      continue;
    }
    for (Event& event : events) {
      event.stack = names.Map(event.stack);
      if (event.kind == EventKind::kMarker && event.arg0 >= 0) {
        event.arg0 = names.Text(StringId(static_cast<uint32_t>(event.arg0))).value;
      }
      CULPRIT_TRY(writer.Add(event));
    }
  }
  if (damaged > 0) {
    writer.metadata().properties["anonymized.damaged_blocks"] = std::to_string(damaged);
  }
  return {};
}

}  // namespace

Status AnonymizeTrace(const std::string& from, const std::string& to, Pseudonyms& pseudonyms) {
  CULPRIT_ASSIGN(const trace::TraceReader reader, trace::TraceReader::Open(from));
  Learn(reader, pseudonyms);
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(to, Overwrite::kRefuse));
  trace::TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  writer.metadata() = reader.metadata();
  ChangeMetadata(pseudonyms, writer.metadata());
  writer.metadata().properties["anonymized"] = "yes";
  NewDictionary names(reader.dictionary(), pseudonyms, writer.dictionary());
  for (trace::Instance instance : reader.instances()) {
    instance.scenario = names.Text(instance.scenario);
    writer.AddInstance(instance);
  }
  CULPRIT_TRY(CopyEvents(reader, names, writer));
  CULPRIT_TRY(writer.Finish());
  return file.Commit();
}

}  // namespace culprit::push

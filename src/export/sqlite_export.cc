// SPDX-License-Identifier: Apache-2.0
//
// A trace as an SQLite database. Ids are the trace's own, from 0; NULL is
// "none" or "unknown". Times are nanoseconds of the trace's clock.
//
//   trace(key, value)      the metadata; labels as label.KEY, other properties
//                          as property.KEY
//   process, thread        thread.kind: user, kernel, idle, device
//   module, frame          frame.name is "module!function"
//   stack                  parent: the caller's stack; frame: the leaf; text:
//                          "a!b;c!d", caller first, for stacks that events have
//                          (NULL for those that are only callers)
//   instance               one execution of a scenario by its initiating thread
//   event                  kind: running, wait, unwait, ready, hardware,
//                          syscall, call, marker; flags: names with commas;
//                          arg0, arg1: bytes and operation of hardware, number
//                          and result of a syscall, NULL and id of a marker;
//                          name: of a marker
//
// Where the time of waits went:
//   SELECT text, sum(dur_ns) AS ns FROM event JOIN stack ON stack.id = event.stack
//   WHERE kind = 'wait' GROUP BY stack.id ORDER BY ns DESC LIMIT 10;
#include "export/event_walk.h"
#include "export/sqlite_file.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;
using trace::Event;

constexpr const char* kSchema = R"(
CREATE TABLE trace(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, name TEXT, command_line TEXT,
                     cgroup TEXT, start_ns INTEGER, end_ns INTEGER);
CREATE TABLE thread(id INTEGER PRIMARY KEY, tid INTEGER, process INTEGER REFERENCES process(id),
                    name TEXT, kind TEXT NOT NULL, start_ns INTEGER, end_ns INTEGER);
CREATE TABLE module(id INTEGER PRIMARY KEY, name TEXT, path TEXT, build_id TEXT);
CREATE TABLE frame(id INTEGER PRIMARY KEY, module INTEGER REFERENCES module(id), function TEXT,
                   file TEXT, line INTEGER, "offset" INTEGER, inlined INTEGER NOT NULL,
                   kernel INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE stack(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES stack(id),
                   frame INTEGER NOT NULL REFERENCES frame(id), depth INTEGER NOT NULL, text TEXT);
CREATE TABLE instance(id INTEGER PRIMARY KEY, scenario TEXT, thread INTEGER REFERENCES thread(id),
                      t0_ns INTEGER NOT NULL, t1_ns INTEGER NOT NULL);
CREATE TABLE event(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, time_ns INTEGER NOT NULL,
                   dur_ns INTEGER NOT NULL, thread INTEGER REFERENCES thread(id),
                   peer INTEGER REFERENCES thread(id), stack INTEGER REFERENCES stack(id),
                   cpu INTEGER, flags TEXT, arg0 INTEGER, arg1 INTEGER, name TEXT);
)";

constexpr const char* kIndexes = R"(
CREATE INDEX event_by_thread ON event(thread, time_ns);
CREATE INDEX event_by_time ON event(time_ns);
CREATE INDEX event_by_stack ON event(stack);
CREATE INDEX instance_by_scenario ON instance(scenario);
)";

template <class Tag>
Statement& BindId(Statement& row, Id<Tag> id) {
  return id.valid() ? row.Bind(id.value) : row.BindNull();
}

Statement& BindTime(Statement& row, int64_t time_ns) {
  return time_ns != trace::kNoTime ? row.Bind(time_ns) : row.BindNull();
}

Status WriteMetadata(const trace::TraceReader& reader, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("trace", 2));
  const trace::Metadata& m = reader.metadata();
  std::map<std::string, std::string> rows = {
      {"machine", m.machine},
      {"os", m.os},
      {"kernel", m.kernel},
      {"arch", m.arch},
      {"app", m.app},
      {"app_version", m.app_version},
      {"source", m.source},
      {"clock", m.clock},
      {"wall_start_ns", m.wall_start_ns == 0 ? "" : std::to_string(m.wall_start_ns)},
      {"begin_ns", std::to_string(m.begin_ns)},
      {"end_ns", std::to_string(m.end_ns)},
      {"cpus", m.cpus == 0 ? "" : std::to_string(m.cpus)},
      {"sample_period_ns", m.sample_period_ns == 0 ? "" : std::to_string(m.sample_period_ns)},
      {"has_switches", m.has_switches ? "1" : "0"},
      {"has_wakers", m.has_wakers ? "1" : "0"},
      {"complete", reader.complete() ? "1" : "0"},
  };
  for (const auto& [key, value] : m.labels) rows["label." + Utf8Text(key)] = value;
  for (const auto& [key, value] : m.properties) rows["property." + Utf8Text(key)] = value;
  for (const auto& [key, value] : rows)
    CULPRIT_TRY(insert.BindTextOrNull(key).BindTextOrNull(Utf8Text(value)).Run());
  return {};
}

Status WriteProcesses(const Dictionary& d, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("process", 7));
  for (size_t i = 0; i < d.processes().size(); ++i) {
    const trace::Process& row = d.processes()[i];
    insert.Bind(static_cast<int64_t>(i)).Bind(row.pid).BindTextOrNull(Utf8Text(d.Text(row.name)));
    insert.BindTextOrNull(Utf8Text(d.Text(row.command_line)))
        .BindTextOrNull(Utf8Text(d.Text(row.cgroup)));
    BindTime(insert, row.start_ns);
    CULPRIT_TRY(BindTime(insert, row.end_ns).Run());
  }
  return {};
}

Status WriteThreads(const Dictionary& d, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("thread", 7));
  for (size_t i = 0; i < d.threads().size(); ++i) {
    const trace::Thread& row = d.threads()[i];
    insert.Bind(static_cast<int64_t>(i)).Bind(row.tid);
    BindId(insert, row.process)
        .BindTextOrNull(Utf8Text(d.Text(row.name)))
        .BindTextOrNull(Name(row.kind));
    BindTime(insert, row.start_ns);
    CULPRIT_TRY(BindTime(insert, row.end_ns).Run());
  }
  return {};
}

Status WriteModules(const Dictionary& d, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("module", 4));
  for (size_t i = 0; i < d.modules().size(); ++i) {
    const trace::Module& row = d.modules()[i];
    insert.Bind(static_cast<int64_t>(i)).BindTextOrNull(Utf8Text(d.Text(row.name)));
    insert.BindTextOrNull(Utf8Text(d.Text(row.path)))
        .BindTextOrNull(Utf8Text(d.Text(row.build_id)));
    CULPRIT_TRY(insert.Run());
  }
  return {};
}

Status WriteFrames(const Dictionary& d, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("frame", 9));
  for (size_t i = 0; i < d.frames().size(); ++i) {
    const trace::Frame& row = d.frames()[i];
    insert.Bind(static_cast<int64_t>(i));
    BindId(insert, row.module).BindTextOrNull(Utf8Text(d.Text(row.function)));
    insert.BindTextOrNull(Utf8Text(d.Text(row.file)));
    row.line == 0 ? insert.BindNull() : insert.Bind(row.line);
    insert.Bind(static_cast<int64_t>(row.offset));
    insert.Bind((row.flags & trace::kInlined) != 0).Bind((row.flags & trace::kKernelMode) != 0);
    CULPRIT_TRY(insert.BindTextOrNull(Utf8Text(d.FrameName(trace::FrameId(i)))).Run());
  }
  return {};
}

// After the events: only stacks they have get their text, since the texts of
// all callers of a deep stack would grow with the square of its depth.
Status WriteStacks(const Dictionary& d, const std::vector<bool>& used, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("stack", 5));
  for (size_t i = 0; i < d.stacks().size(); ++i) {
    const trace::StackNode& row = d.stacks()[i];
    insert.Bind(static_cast<int64_t>(i));
    BindId(BindId(insert, row.parent), row.frame).Bind(row.depth);
    insert.BindTextOrNull(used[i] ? Utf8Text(d.StackText(trace::StackId(i))) : "");
    CULPRIT_TRY(insert.Run());
  }
  return {};
}

Status WriteInstances(const trace::TraceReader& reader, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("instance", 5));
  int64_t id = 0;
  for (const trace::Instance& row : reader.instances()) {
    insert.Bind(id++).BindTextOrNull(Utf8Text(reader.dictionary().Text(row.scenario)));
    CULPRIT_TRY(BindId(insert, row.thread).Bind(row.t0_ns).Bind(row.t1_ns).Run());
  }
  return {};
}

Status WriteEvent(const Dictionary& d, const Event& event, int64_t id, Statement& insert) {
  std::string flags;
  for (std::string_view name : FlagNames(event.flags)) {
    flags += (flags.empty() ? "" : ",") + std::string(name);
  }
  const ArgumentNames names = ArgumentNamesOf(event.kind);
  insert.Bind(id).BindTextOrNull(trace::Name(event.kind)).Bind(event.time_ns).Bind(event.dur_ns);
  BindId(BindId(BindId(insert, event.thread), event.peer), event.stack);
  event.cpu == Event::kNoCpu ? insert.BindNull() : insert.Bind(int64_t{event.cpu});
  insert.BindTextOrNull(flags);
  names.arg0.empty() ? insert.BindNull() : insert.Bind(FirstArgument(event));
  names.arg1.empty() ? insert.BindNull() : insert.Bind(event.arg1);
  return insert.BindTextOrNull(Utf8Text(MarkerName(d, event))).Run();
}

Result<Summary> WriteEvents(const trace::TraceReader& reader, const Options& options,
                            std::vector<bool>& used, SqliteFile& file) {
  CULPRIT_ASSIGN(Statement insert, file.Prepare("event", 12));
  int64_t id = 0;
  return WalkEvents(reader, options.progress, [&](const std::vector<Event>& events) -> Status {
    for (const Event& event : events) {
      if (event.stack.valid()) used[event.stack.value] = true;
      CULPRIT_TRY(WriteEvent(reader.dictionary(), event, id++, insert));
    }
    return Status();
  });
}

}  // namespace

Result<Summary> ExportSqlite(const trace::TraceReader& reader, const Options& options,
                             const std::string& path, Overwrite overwrite) {
  CULPRIT_TRY(RequireReadable(reader));
  const Dictionary& d = reader.dictionary();
  CULPRIT_ASSIGN(SqliteFile file, SqliteFile::Create(path, overwrite));
  CULPRIT_TRY(file.Execute(kSchema));
  CULPRIT_TRY(WriteMetadata(reader, file));
  CULPRIT_TRY(WriteProcesses(d, file));
  CULPRIT_TRY(WriteThreads(d, file));
  CULPRIT_TRY(WriteModules(d, file));
  CULPRIT_TRY(WriteFrames(d, file));
  CULPRIT_TRY(WriteInstances(reader, file));
  std::vector<bool> used(d.stacks().size());
  CULPRIT_ASSIGN(Summary summary, WriteEvents(reader, options, used, file));
  CULPRIT_TRY(WriteStacks(d, used, file));
  CULPRIT_TRY(file.Execute(kIndexes));
  CULPRIT_TRY(file.Commit());
  return summary;
}

}  // namespace culprit::export_

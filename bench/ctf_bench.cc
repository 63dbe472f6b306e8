// SPDX-License-Identifier: Apache-2.0
// The CTF reader against babeltrace2, as a library and as a program:
//
//   ctf_bench FOLDER...
//
// FOLDER is a CTF trace (its metadata and streams). Four ways through the same
// events, best of several rounds, one thread each: our decoding alone with the
// fields that the importer asks for; the whole import into a native trace that
// is thrown away; libbabeltrace2's C API with its merging of streams and a sink
// that only counts; the text that `babeltrace2` prints, into /dev/null. Counts
// must agree. Where the library was not found when this was built, or the
// program is not installed, that line says so.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/check.h"
#include "import/ctf_event_table.h"
#include "import/ctf_reader.h"
#include "import/importers.h"
#ifdef CULPRIT_HAVE_BABELTRACE2
#include <babeltrace2/babeltrace.h>
#endif

namespace {

using namespace culprit;
using namespace culprit::import_;

constexpr int kRounds = 5;

double BestSeconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return best;
}

void Print(const char* what, uint64_t events, double seconds) {
  std::printf("  %-28s %9.1f ms %8.2f M events/s\n", what, 1e3 * seconds,
              static_cast<double>(events) / seconds / 1e6);
}

uint64_t Decode(const Source& source) {
  Diagnostics diagnostics;
  const auto schema = LoadCtfSchema(source, diagnostics);
  CULPRIT_CHECK(schema.ok());
  CtfDecoder decoder(schema.value(), CtfContextWants(),
                     [](const CtfEventClass& event) { return MeaningOf(event.name).wants; });
  const auto files = CtfStreamFiles(source);
  CtfReader reader(decoder, files, diagnostics);
  uint64_t events = 0;
  while (reader.Next() != nullptr) ++events;
  return events;
}

void Import(const Source& source) {
  trace::TraceWriter writer([](std::string_view) { return Status(); });
  Diagnostics diagnostics;
  CULPRIT_CHECK(CtfImporter().read(source, {.symbols = false}, writer, diagnostics).ok());
  CULPRIT_CHECK(writer.Finish().ok());
}

#ifdef CULPRIT_HAVE_BABELTRACE2

struct Counter {
  bt_message_iterator* messages = nullptr;
  uint64_t events = 0;
};

bt_graph_simple_sink_component_initialize_func_status Initialize(bt_message_iterator* messages,
                                                                 void* data) {
  static_cast<Counter*>(data)->messages = messages;
  return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

bt_graph_simple_sink_component_consume_func_status Consume(bt_message_iterator* messages,
                                                           void* data) {
  bt_message_array_const batch = nullptr;
  uint64_t count = 0;
  const auto status = bt_message_iterator_next(messages, &batch, &count);
  if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END) {
    return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
  }
  if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
    return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const bool is_event = bt_message_get_type(batch[i]) == BT_MESSAGE_TYPE_EVENT;
    static_cast<Counter*>(data)->events += is_event ? 1 : 0;
    bt_message_put_ref(batch[i]);
  }
  return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

const bt_plugin* Plugin(const char* name) {
  const bt_plugin* plugin = nullptr;
  const auto status = bt_plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, &plugin);
  CULPRIT_CHECK(status == BT_PLUGIN_FIND_STATUS_OK);
  return plugin;
}

uint64_t CountByLibrary(const std::string& folder) {
  bt_graph* graph = bt_graph_create(0);
  const bt_plugin* ctf = Plugin("ctf");
  const bt_plugin* utilities = Plugin("utils");
  bt_value* parameters = bt_value_map_create();
  bt_value* inputs = nullptr;
  bt_value_map_insert_empty_array_entry(parameters, "inputs", &inputs);
  bt_value_array_append_string_element(inputs, folder.c_str());
  const bt_component_source* source = nullptr;
  const bt_component_filter* merge = nullptr;
  const bt_component_sink* sink = nullptr;
  Counter counter;
  bt_graph_add_source_component(graph,
                                bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs"),
                                "source", parameters, BT_LOGGING_LEVEL_NONE, &source);
  bt_graph_add_filter_component(
      graph, bt_plugin_borrow_filter_component_class_by_name_const(utilities, "muxer"), "merge",
      nullptr, BT_LOGGING_LEVEL_NONE, &merge);
  bt_graph_add_simple_sink_component(graph, "sink", Initialize, Consume, nullptr, &counter, &sink);
  for (uint64_t i = 0; i < bt_component_source_get_output_port_count(source); ++i) {
    const uint64_t last = bt_component_filter_get_input_port_count(merge) - 1;
    bt_graph_connect_ports(graph, bt_component_source_borrow_output_port_by_index_const(source, i),
                           bt_component_filter_borrow_input_port_by_index_const(merge, last),
                           nullptr);
  }
  bt_graph_connect_ports(graph, bt_component_filter_borrow_output_port_by_index_const(merge, 0),
                         bt_component_sink_borrow_input_port_by_index_const(sink, 0), nullptr);
  bt_graph_run(graph);
  bt_graph_put_ref(graph);
  bt_value_put_ref(parameters);
  bt_plugin_put_ref(ctf);
  bt_plugin_put_ref(utilities);
  return counter.events;
}

void MeasureLibrary(const std::string& folder, uint64_t expected, double decode_s) {
  uint64_t events = 0;
  const double seconds = BestSeconds([&] { events = CountByLibrary(folder); });
  Print("libbabeltrace2, C API", events, seconds);
  if (events != expected) {
    std::printf("  it read %llu events, not %llu\n", static_cast<unsigned long long>(events),
                static_cast<unsigned long long>(expected));
  }
  std::printf("  decoding is %.1f times as fast as the C API\n", seconds / decode_s);
}

#else

void MeasureLibrary(const std::string&, uint64_t, double) {
  std::printf("  libbabeltrace2: not found when this was built, left out\n");
}

#endif

void MeasureProgram(const std::string& folder, uint64_t events, double decode_s, double import_s) {
  if (std::system("babeltrace2 --version > /dev/null 2>&1") != 0) {
    std::printf("  babeltrace2: not installed, left out\n");
    return;
  }
  const std::string command = "babeltrace2 '" + folder + "' > /dev/null 2>&1";
  const double seconds = BestSeconds([&] { (void)!std::system(command.c_str()); });
  Print("babeltrace2, text", events, seconds);
  std::printf("  decoding is %.1f times, the whole import %.1f times as fast as the text\n",
              seconds / decode_s, seconds / import_s);
}

void Measure(const std::string& folder) {
  for (const auto& opened : OpenSources(folder)) {
    if (!opened.ok() || CtfImporter().sniff(opened.value(), {}) == Match::kNo) continue;
    const Source& source = opened.value();
    std::printf("%s\n", source.name().c_str());
    uint64_t events = 0;
    const double decode_s = BestSeconds([&] { events = Decode(source); });
    const double import_s = BestSeconds([&] { Import(source); });
    Print("decoding", events, decode_s);
    Print("whole import", events, import_s);
    MeasureLibrary(folder, events, decode_s);
    MeasureProgram(folder, events, decode_s, import_s);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("usage: ctf_bench FOLDER...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) Measure(argv[i]);
  return 0;
}

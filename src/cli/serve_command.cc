// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/mine_options.h"
#include "serve/http_server.h"
#include "serve/site.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kMaxPort = 65535;

// Until SIGINT or SIGTERM; threads started after this was made have them blocked.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
  }

 private:
  sigset_t set_ = {};
  sigset_t before_ = {};
};

Result<std::string> TokenOf(const Arguments& arguments) {
  std::string token = arguments.Text("--token");
  if (const char* given = std::getenv("CULPRIT_TOKEN"); token.empty() && given != nullptr) {
    token = given;
  }
  if (token.empty() && !serve::IsLoopback(arguments.Text("--address"))) {
    return Error{.message = "an address that others can reach needs a token",
                 .hint =
                     "set CULPRIT_TOKEN to a long random text, e.g. CULPRIT_TOKEN=$(openssl "
                     "rand -hex 20)"};
  }
  return token;
}

Result<int> RunServe(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  CULPRIT_ASSIGN(const std::string token, TokenOf(arguments));
  const uint64_t port = arguments.Number("--port");
  if (port > kMaxPort) return Error{.message = "--port is at most 65535"};
  const std::optional<uint64_t> max_upload = ParseBytes(arguments.Text("--max-upload"));
  if (!max_upload) return Error{.message = "--max-upload takes a size such as 512MB or 4GB"};
  const std::string address = arguments.Text("--address");
  const StopSignals signals;
  serve::SiteOptions site_options;
  site_options.corpus = arguments.operands().front();
  site_options.token = token;
  site_options.loopback = serve::IsLoopback(address);
  site_options.uploads = arguments.Has("--uploads");
  site_options.max_upload_bytes = *max_upload;
  site_options.analysis = {
      .gather = settings.gather, .mine = settings.mine, .store = StorePath(arguments)};
  CULPRIT_ASSIGN(const std::unique_ptr<serve::Site> site, serve::Site::Open(site_options));
  serve::ServerOptions server_options;
  server_options.address = address;
  server_options.port = static_cast<uint16_t>(port);
  CULPRIT_ASSIGN(const std::unique_ptr<serve::HttpServer> server,
                 serve::HttpServer::Start(server_options, *site));
  const std::string host = address.find(':') == std::string::npos ? address : "[" + address + "]";
  output.Print("http://" + host + ":" + std::to_string(server->port()) + "/\n");
  output.Note("serving " + site_options.corpus + "; end with Ctrl-C");
  signals.Wait();
  return 0;
}

}  // namespace

Command ServeCommand() {
  Command command;
  command.name = "serve";
  command.summary = "the report of a corpus as a live site, with an API and uploads";
  command.operands = "CORPUS";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"culprit serve fleet", "at http://127.0.0.1:7373/, for this machine only"},
      {"CULPRIT_TOKEN=secret culprit serve fleet --address 0.0.0.0 --uploads",
       "for a team, who may add traces"},
      {"curl -T perf.data http://127.0.0.1:7373/api/v1/traces/monday", "an upload"}};
  command.flags = {{.name = "--address",
                    .kind = ValueKind::kText,
                    .value = "IP",
                    .help = "where to listen; anything but loopback needs a token",
                    .default_text = "127.0.0.1"},
                   {.name = "--port",
                    .letter = 'p',
                    .kind = ValueKind::kNumber,
                    .value = "N",
                    .help = "the port; 0 takes a free one",
                    .default_text = "7373"},
                   {.name = "--token",
                    .kind = ValueKind::kText,
                    .value = "TEXT",
                    .help = "asked of every request; better set as CULPRIT_TOKEN, which other "
                            "users of the machine cannot see"},
                   {.name = "--uploads", .help = "take traces: PUT /api/v1/traces/NAME"},
                   {.name = "--max-upload",
                    .kind = ValueKind::kText,
                    .value = "SIZE",
                    .help = "the largest trace taken",
                    .default_text = "4GB"}};
  for (Flag& flag : MineFlags()) command.flags.push_back(std::move(flag));
  command.flags.push_back(StoreFlag());
  command.details =
      "Analyses the corpus in the background when it starts and whenever traces are added, by "
      "upload or by any other culprit; readers always see the last finished analysis. What is "
      "marked in the page is kept in the signature store. docs/serve.md describes the API.";
  command.run = &RunServe;
  return command;
}

}  // namespace culprit::cli

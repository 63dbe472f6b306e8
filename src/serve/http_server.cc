// SPDX-License-Identifier: Apache-2.0
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace culprit::serve {
namespace {

constexpr size_t kMaxHeaders = 100;

// One request on its way in: lives from its header to its answer.
struct Exchange {
  HttpRequest request;
  std::unique_ptr<BodySink> sink;
  bool began = false;  // the header was seen; the sink, if any, is chosen
  bool too_large = false;
  bool sink_full = false;
};

MHD_Result TakeHeader(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& headers = *static_cast<std::vector<std::pair<std::string, std::string>>*>(to);
  if (headers.size() >= kMaxHeaders || name == nullptr) return MHD_NO;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  headers.emplace_back(std::move(lower), value == nullptr ? "" : value);
  return MHD_YES;
}

// Keeps a response's bytes alive until libmicrohttpd has sent them.
using Body = std::shared_ptr<const std::string>;
void FreeBody(void* kept) { delete static_cast<Body*>(kept); }

MHD_Result Send(MHD_Connection* connection, const HttpResponse& answer) {
  const Body body = answer.body ? answer.body : std::make_shared<const std::string>();
  auto* kept = new Body(body);
  MHD_Response* response = MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), const_cast<char*>(body->data()), &FreeBody, kept);
  if (response == nullptr) {
    delete kept;
    return MHD_NO;
  }
  MHD_add_response_header(response, "Content-Type", answer.content_type.c_str());
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "X-Frame-Options", "DENY");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

class MicroServer : public HttpServer {
 public:
  MicroServer(const ServerOptions& options, Service& service)
      : options_(options), service_(service) {}
  ~MicroServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  Status Listen() {
    sockaddr_storage storage = {};
    if (!FillAddress(storage)) {
      return Error{.message = "'" + options_.address + "' is not an address",
                   .hint = "give a numeric address such as 127.0.0.1, 0.0.0.0 or ::1"};
    }
    const bool v6 = storage.ss_family == AF_INET6;
    const unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | (v6 ? static_cast<unsigned>(MHD_USE_IPv6) : 0U);
    daemon_ = MHD_start_daemon(
        flags, options_.port, nullptr, nullptr, &MicroServer::Handle, this, MHD_OPTION_SOCK_ADDR,
        reinterpret_cast<sockaddr*>(&storage), MHD_OPTION_THREAD_POOL_SIZE, options_.threads,
        MHD_OPTION_CONNECTION_LIMIT, options_.max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        options_.timeout_seconds, MHD_OPTION_NOTIFY_COMPLETED, &MicroServer::Completed, this,
        MHD_OPTION_END);
    if (daemon_ == nullptr) {
      return Error{.message = "cannot listen on " + options_.address + " port " +
                              std::to_string(options_.port) + ": " + std::strerror(errno),
                   .hint = "another program may have the port: choose one with --port"};
    }
    return Status();
  }

  uint16_t port() const override {
    const MHD_DaemonInfo* info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
    return info == nullptr ? 0 : info->port;
  }

 private:
  bool FillAddress(sockaddr_storage& storage) const {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    if (inet_pton(AF_INET, options_.address.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(options_.port);
      return true;
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    if (inet_pton(AF_INET6, options_.address.c_str(), &v6.sin6_addr) != 1) return false;
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(options_.port);
    return true;
  }

  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char* upload, size_t* size,
                           void** state) {
    auto& server = *static_cast<MicroServer*>(self);
    if (*state == nullptr) {
      auto exchange = std::make_unique<Exchange>();
      exchange->request.method = method;
      exchange->request.path = url;
      MHD_get_connection_values(connection, MHD_HEADER_KIND, &TakeHeader,
                                &exchange->request.headers);
      *state = exchange.release();
      return MHD_YES;
    }
    auto& exchange = *static_cast<Exchange*>(*state);
    if (!exchange.began) {
      exchange.began = true;
      exchange.sink = server.service_.Sink(exchange.request);
    }
    if (*size > 0) {
      server.TakeBody(exchange, {upload, *size});
      *size = 0;
      return MHD_YES;
    }
    return Send(connection, server.Answer(exchange));
  }

  void TakeBody(Exchange& exchange, std::string_view bytes) const {
    if (exchange.sink) {
      if (!exchange.sink_full) exchange.sink_full = !exchange.sink->Take(bytes);
    } else if (exchange.request.body.size() + bytes.size() > options_.max_body_bytes) {
      exchange.too_large = true;
    } else {
      exchange.request.body += bytes;
    }
  }

  HttpResponse Answer(Exchange& exchange) {
    if (exchange.sink) return exchange.sink->Finish();
    if (exchange.too_large) return TextResponse(413, "the body is too large\n");
    return service_.Answer(exchange.request);
  }

  static void Completed(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    delete static_cast<Exchange*>(*state);
    *state = nullptr;
  }

  ServerOptions options_;
  Service& service_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

const std::string& HttpRequest::Header(std::string_view lower_case_name) const {
  static const std::string kNone;
  const std::string* found = &kNone;
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) found = &value;
  }
  return *found;
}

HttpResponse TextResponse(int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

HttpResponse JsonResponse(int status, std::string json) {
  HttpResponse response = TextResponse(status, std::move(json));
  response.content_type = "application/json";
  return response;
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const ServerOptions& options,
                                                      Service& service) {
  auto server = std::make_unique<MicroServer>(options, service);
  CULPRIT_TRY(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

bool IsLoopback(const std::string& address) {
  in_addr v4 = {};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace culprit::serve

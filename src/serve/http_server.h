// SPDX-License-Identifier: Apache-2.0
//
// HttpServer: HTTP/1.1 on one address (libmicrohttpd underneath: a small pool of
// threads, each over epoll). A Service answers requests; it is called from
// several threads at once. Bodies are held in memory up to a bound, unless the
// service takes them as a stream. Slow, oversized and malformed requests end in
// an error response or a closed connection, never in waiting: a connection that
// is silent for `timeout_seconds` is closed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace culprit::serve {

struct HttpRequest {
  std::string method;
  std::string path;  // decoded, without the query
  // Names in lower case; of a header given twice the last.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // Empty if absent.
  const std::string& Header(std::string_view lower_case_name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  std::vector<std::pair<std::string, std::string>> headers;
};
HttpResponse TextResponse(int status, std::string text);
HttpResponse JsonResponse(int status, std::string json);

// Takes a body as it comes. Destroyed without Finish() when the request is cut.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // False: enough; the rest is read and dropped, and Finish() answers.
  virtual bool Take(std::string_view bytes) = 0;
  virtual HttpResponse Finish() = 0;
};

class Service {
 public:
  virtual ~Service() = default;
  // Before a body is read; null: it is held in memory and Answer() is called.
  virtual std::unique_ptr<BodySink> Sink(const HttpRequest& request) = 0;
  virtual HttpResponse Answer(const HttpRequest& request) = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // or an IPv6 one
  uint16_t port = 0;                  // 0: any that is free
  uint32_t threads = 2;
  uint32_t max_connections = 1000;
  uint32_t timeout_seconds = 30;
  size_t max_body_bytes = size_t{1} << 20;
};

class HttpServer {
 public:
  // The service must outlive the server.
  static Result<std::unique_ptr<HttpServer>> Start(const ServerOptions& options, Service& service);
  virtual ~HttpServer() = default;  // stops, after the requests in flight
  virtual uint16_t port() const = 0;
};

// 127.0.0.0/8 or ::1.
bool IsLoopback(const std::string& address);

}  // namespace culprit::serve

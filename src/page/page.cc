// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include <openssl/sha.h>

#include <array>

#include "base/check.h"
#include "base/parallel.h"
#include "page/encoding.h"

namespace culprit::page {

namespace embedded {
// In the file that cmake/page.cmake makes; empty where web/ was not built.
extern const std::string_view kScript;
extern const std::string_view kStyle;
}  // namespace embedded

namespace {

std::string HashSource(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest = {};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return "'sha256-" + Base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

std::string EscapeText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

bool IsPartName(std::string_view name) {
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '-' && c != '.' && c != '_') return false;
  }
  return !name.empty();
}

std::string Head(const Bundle& bundle, std::string_view title, bool served) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"generator\" content=\"culprit\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"";
  html += ContentSecurityPolicy(bundle, served) + "\">\n";
  if (served) html += "<meta name=\"culprit-source\" content=\"server\">\n";
  html += "<title>" + EscapeText(title) + "</title>\n<style>";
  html += bundle.style;
  return html + "</style>\n</head>\n<body>\n";
}

std::string Foot(const Bundle& bundle) {
  std::string html =
      "<noscript>This report is drawn by the script inside it, which is switched off "
      "here.</noscript>\n<script>";
  html += bundle.script;
  return html + "</script>\n</body>\n</html>\n";
}

}  // namespace

Result<Bundle> FindBundle() {
  if (embedded::kScript.empty() || embedded::kStyle.empty()) {
    return Error{.message = "this culprit was built without its web page",
                 .hint = "build the page with './do page' (it needs npm), then culprit again"};
  }
  return Bundle{.script = embedded::kScript, .style = embedded::kStyle};
}

bool IsReport(std::string_view head) {
  return head.find("<meta name=\"generator\" content=\"culprit\">") != std::string_view::npos;
}

std::string ContentSecurityPolicy(const Bundle& bundle, bool served) {
  return "default-src 'none'; script-src " + HashSource(bundle.script) + "; style-src " +
         HashSource(bundle.style) + "; img-src data: blob:; connect-src " +
         (served ? "'self'" : "'none'") + "; base-uri 'none'; form-action 'none'";
}

std::string MakeReport(const Bundle& bundle, std::string_view title,
                       const std::vector<PagePart>& parts) {
  std::vector<std::string> blocks(parts.size());
  ParallelFor(parts.size(), 0, [&](size_t i) {
    CULPRIT_CHECK(IsPartName(parts[i].name));
    blocks[i] = "<script type=\"application/gzip\" data-part=\"" + std::string(parts[i].name) +
                "\">" + Base64(Gzip(parts[i].json)) + "</script>\n";
  });
  std::string html = Head(bundle, title, false);
  for (const std::string& block : blocks) html += block;
  return html + Foot(bundle);
}

std::string MakeServedPage(const Bundle& bundle) {
  return Head(bundle, "culprit", true) + Foot(bundle);
}

}  // namespace culprit::page

// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "page/encoding.h"

namespace culprit::page::TEST_FILE {
namespace {

std::string Gunzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(size_t{1} << 22, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Encoding, Base64IsTheOneOfRfc4648) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

TEST(Encoding, Base64OfManyPiecesHasNoPaddingInside) {
  const std::string bytes(7 << 20, 'x');
  const std::string text = Base64(bytes);
  EXPECT_EQ(text.size(), (bytes.size() + 2) / 3 * 4);
  EXPECT_GE(text.find('='), text.size() - 2);
}

TEST(Encoding, GzipComesBackWhole) {
  std::mt19937_64 random(1);
  std::string bytes;
  for (int i = 0; i < 300000; ++i) bytes += static_cast<char>(random() % 7);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, bytes.size()}) {
    EXPECT_EQ(Gunzip(Gzip(bytes.substr(0, size))), bytes.substr(0, size));
  }
  EXPECT_EQ(Gzip(bytes), Gzip(bytes));
}

constexpr Bundle kBundle = {.script = "start();", .style = "p{}"};

TEST(Page, HoldsEveryPartAndNoMarkupFromIt) {
  const std::string json = R"({"name":"</script><script>alert(1)</script>"})";
  const std::string html = MakeReport(kBundle, "a <b> & \"c\"", {{"overview", json}});
  EXPECT_NE(html.find("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"), std::string::npos);
  EXPECT_EQ(html.find("alert(1)"), std::string::npos);
  const std::string open = "data-part=\"overview\">";
  const size_t begin = html.find(open);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = html.find("</script>", begin);
  const std::string block = html.substr(begin + open.size(), end - begin - open.size());
  EXPECT_EQ(block, Base64(Gzip(json)));
}

TEST(Page, AdmitsItsOwnScriptByHashAndNothingFromOutside) {
  const std::string policy = ContentSecurityPolicy(kBundle, false);
  // printf 'start();' | openssl dgst -sha256 -binary | base64
  EXPECT_NE(policy.find("script-src 'sha256-E6jQvrT2ZivWG9GJ4AAEZf4MhI7l3QkLroW4hgvUT4c='"),
            std::string::npos)
      << policy;
  EXPECT_NE(policy.find("connect-src 'none'"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  const std::string html = MakeReport(kBundle, "t", {});
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
}

TEST(Page, KnowsItsOwnReports) {
  EXPECT_TRUE(IsReport(MakeReport(kBundle, "t", {}).substr(0, 300)));
  EXPECT_FALSE(IsReport("<!doctype html>\n<html><head><title>mine</title>"));
}

TEST(Page, ServedPageAsksItsServer) {
  const std::string html = MakeServedPage(kBundle);
  EXPECT_NE(html.find("culprit-source"), std::string::npos);
  EXPECT_NE(html.find("connect-src 'self'"), std::string::npos);
}

}  // namespace
}  // namespace culprit::page::TEST_FILE

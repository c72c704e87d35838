// What GzipSink hands on, as zlib's inflate reads it.
#include "src/exporters/gzip_sink.h"

#include <catch2/catch.hpp>
#include <random>

#include "src/profile/sink_buffer.h"
#include "tests/exporters/gunzip.h"

namespace perfkit::exporters {
namespace {

// `pieces` as one file; no piece of the result is longer than 64 KiB.
std::string Gzip(const std::vector<std::string>& pieces) {
  std::string file;
  const auto add = [&](std::string_view piece) {
    CHECK(piece.size() <= 64 << 10);
    CHECK(!piece.empty());
    file += piece;
    return absl::OkStatus();
  };
  GzipSink gzip(add);
  for (const std::string& piece : pieces) CHECK(gzip.Write(piece) == absl::OkStatus());
  CHECK(gzip.Finish() == absl::OkStatus());
  return file;
}

std::string Noise(size_t size) {
  std::mt19937_64 random(7);
  std::string noise(size, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  return noise;
}

TEST_CASE("what goes into a gzip sink comes out again, whatever its size", "[exporters][gzip]") {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65'535}, size_t{65'536}, size_t{65'537}, size_t{1} << 20}) {
    for (const std::string& text : {Noise(size), std::string(size, 'a')}) {
      const std::optional<std::string> back = testing::Gunzip(Gzip({text}));
      REQUIRE(back.has_value());
      CHECK((*back == text));
    }
  }
}

TEST_CASE("a gzip stream does not depend on the pieces that it came in", "[exporters][gzip]") {
  const std::string text = Noise(200'000) + std::string(200'000, 'b');
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size(); at += 7'001) pieces.push_back(text.substr(at, 7'001));
  CHECK((Gzip({text}) == Gzip(pieces)));
  CHECK((Gzip({text}) == Gzip({"", text, ""})));
}

TEST_CASE("whichever piece a sink refuses, its status comes back from each call after it", "[exporters][gzip]") {
  const std::string text = Noise(300'000);
  const absl::Status full(absl::StatusCode::kResourceExhausted, "disk full");
  for (int refused = 1; refused <= 5; ++refused) {
    int pieces = 0;
    const auto refuse = [&](std::string_view) { return ++pieces == refused ? full : absl::OkStatus(); };
    GzipSink gzip(refuse);
    const auto compress = [&](std::string_view bytes) { return gzip.Write(bytes); };
    profile::SinkBuffer buffer(compress);
    buffer.Add(text);
    const absl::Status added = buffer.Finish();
    CHECK((added == full || (refused == 5 && added.ok())));  // the last piece is handed on by Finish
    CHECK(gzip.Finish() == full);
    CHECK(gzip.Write(text) == full);
    CHECK(gzip.Finish() == full);
    CHECK(pieces == refused);
  }
}

}  // namespace
}  // namespace perfkit::exporters

// JSON: what each value becomes, and that another parser reads back what was written.
#include "src/exporters/json_writer.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/exporters/written.h"

namespace perfkit::exporters {
namespace {

std::string JsonString(std::string_view text) {
  return WrittenJson([&](JsonWriter& json) { json.String(text); });
}

TEST_CASE("JSON has its commas between values, and none after a key", "[exporters][json]") {
  const std::string text = WrittenJson([](JsonWriter& json) {
    json.BeginObject().Key("a").BeginArray().EndArray().Member("b", 1).Key("c").BeginArray();
    json.Value(1).String("x").BeginObject().Member("d", "e").EndObject().Null().Value(true).EndArray();
    json.Key("f").BeginObject().EndObject().EndObject();
  });
  CHECK(text == R"({"a":[],"b":1,"c":[1,"x",{"d":"e"},null,true],"f":{}})");
}

TEST_CASE("JSON strings escape what may not stand in them, or would end a script", "[exporters][json]") {
  const std::pair<std::string_view, std::string_view> goldens[] = {
      {"", R"("")"},
      {"std::vector<int>::at", R"("std::vector\u003cint>::at")"},
      {"</script>", R"("\u003c/script>")"},
      {R"(say "hi" \ bye)", R"("say \"hi\" \\ bye")"},
      {"tab\tline\n", R"("tab\u0009line\u000a")"},
      {std::string_view("nul\0end", 7), R"("nul\u0000end")"},
      {"\x7f", R"("\u007f")"},
      {"\xe2\x80\xa8\xe2\x80\xa9", R"("\u2028\u2029")"},
      {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5\""},
  };
  for (const auto& [text, json] : goldens) CHECK(JsonString(text) == json);
}

TEST_CASE("each byte that belongs to no UTF-8 character becomes one replacement character", "[exporters][json]") {
  const std::string kNo = "\xef\xbf\xbd";
  CHECK(JsonString("a\x80z") == "\"a" + kNo + "z\"");
  CHECK(JsonString("\xc0\xaf") == "\"" + kNo + kNo + "\"");                      // overlong
  CHECK(JsonString("\xed\xa0\x80") == "\"" + kNo + kNo + kNo + "\"");            // a surrogate
  CHECK(JsonString("\xf4\x90\x80\x80") == "\"" + kNo + kNo + kNo + kNo + "\"");  // beyond U+10FFFF
  CHECK(JsonString("\xe2\x82") == "\"" + kNo + kNo + "\"");                      // cut short
}

TEST_CASE("JSON numbers are exact, and what is no number is null", "[exporters][json]") {
  const std::string text = WrittenJson([](JsonWriter& json) {
    json.BeginArray().Value(UINT64_MAX).Value(INT64_MIN).Value(0.1).Value(1e300).Value(-0.0);
    json.Value(std::numeric_limits<double>::quiet_NaN()).Value(std::numeric_limits<double>::infinity()).EndArray();
  });
  CHECK(text == "[18446744073709551615,-9223372036854775808,0.1,1e+300,-0,null,null]");
}

TEST_CASE("another parser reads random strings back, bytes that are no text apart", "[exporters][json]") {
  std::mt19937 random(17);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 20, '\0');
    for (char& c : text) c = static_cast<char>(i % 2 == 0 ? random() % 128 : random() % 256);
    const nlohmann::json parsed = nlohmann::json::parse(JsonString(text));  // refuses invalid UTF-8
    if (i % 2 == 0) CHECK(parsed.get<std::string>() == text);
  }
}

}  // namespace
}  // namespace perfkit::exporters

// Lists cut into elements that stand alone.
#include <catch2/catch.hpp>

#include "perfkit/event.h"

namespace perfkit {
namespace {

using Texts = std::vector<std::string>;

Texts Split(std::string_view text) {
  const absl::StatusOr<Texts> elements = SplitEventList(text);
  INFO(text);
  REQUIRE(elements.ok());
  return *elements;
}

TEST_CASE("events and groups come out as they were written, without blanks") {
  CHECK(Split("cycles") == Texts{"cycles"});
  CHECK(Split(" cycles , page-faults:u ") == Texts{"cycles", "page-faults:u"});
  CHECK(Split("{cycles, instructions}:u,page-faults") == Texts{"{cycles,instructions}:u", "page-faults"});
  CHECK(Split("{cycles}:u") == Texts{"{cycles}:u"});
  CHECK(Split("cpu/event=0x3c,umask=1/pp,cycles") == Texts{"cpu/event=0x3c,umask=1/pp", "cycles"});
  CHECK(Split("uprobe:/lib/x.so:malloc,cycles") == Texts{"uprobe:/lib/x.so:malloc", "cycles"});
}

TEST_CASE("names need not mean anything to be told apart") {
  CHECK(Split("cylces,page-faults") == Texts{"cylces", "page-faults"});
}

TEST_CASE("each element parses alone to what it is in the list") {
  const char* const list = "{page-faults,task-clock}:u,context-switches";
  size_t events = 0;
  for (const std::string& element : Split(list)) {
    const auto groups = ParseEventList(element);
    REQUIRE(groups.ok());
    REQUIRE(groups->size() == 1);
    events += groups->front().size();
    for (const EventConfig& event : groups->front()) CHECK(event.exclude_kernel == (event.name != "context-switches"));
  }
  CHECK(events == 3);
}

TEST_CASE("misplaced braces and commas are refused") {
  for (const char* text : {"", ",", "cycles,", "{cycles", "cycles}", "{{cycles}}", "{},cycles"}) {
    CAPTURE(text);
    CHECK(SplitEventList(text).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace perfkit

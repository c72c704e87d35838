// Lists and groups: how they are cut apart, and what group modifiers do.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/event.h"
#include "tests/support/event_roots.h"

namespace perfkit {
namespace {

using testing::GoldenRoots;
using Events = std::vector<std::vector<EventConfig>>;

Events ParseList(std::string_view text, const char* machine = "amd_zen3") {
  absl::StatusOr<Events> events = ParseEventList(text, GoldenRoots(machine));
  INFO(std::string(text) << ": " << events.status().ToString());
  REQUIRE(events.ok());
  return *std::move(events);
}

// "[a b] [c]": the names, by group.
std::string Shape(std::string_view text) {
  std::string shape;
  for (const std::vector<EventConfig>& group : ParseList(text)) {
    shape += shape.empty() ? "[" : " [";
    for (const EventConfig& event : group) shape += (shape.back() == '[' ? "" : " ") + event.name;
    shape += "]";
  }
  return shape;
}

std::string RefusalOfList(std::string_view text) {
  const absl::StatusOr<Events> events = ParseEventList(text, GoldenRoots("amd_zen3"));
  return events.ok() ? "parsed" : std::string(events.status().message());
}

TEST_CASE("commas separate events, braces group them", "[list]") {
  CHECK(Shape("cycles") == "[cycles]");
  CHECK(Shape("cycles,cs") == "[cycles] [cs]");
  CHECK(Shape(" cycles , cs ") == "[cycles] [cs]");
  CHECK(Shape("{cycles,instructions},cs") == "[cycles instructions] [cs]");
  CHECK(Shape("cs,{ cycles:u , instructions }:k,{faults}") == "[cs] [cycles:u instructions] [faults]");
}

TEST_CASE("a PMU's commas are its own", "[list]") {
  CHECK(Shape("cpu/event=0x3c,umask=1/u,cs") == "[cpu/event=0x3c,umask=1/u] [cs]");
  CHECK(Shape("{cpu/event=1,umask=2/:k,cpu/event=3/},cs") == "[cpu/event=1,umask=2/:k cpu/event=3/] [cs]");
  CHECK(Shape("cpu/event=1,name='a,b/c'/,cs") == "[a,b/c] [cs]");
}

TEST_CASE("slashes of breakpoints and paths enclose nothing", "[list]") {
  CHECK(Shape("mem:0x10/4:rw,mem:0x20/8:w,cs") == "[mem:0x10/4:rw] [mem:0x20/8:w] [cs]");
  CHECK(Shape("uprobe:/proc/self/exe+0x40,cs") == "[uprobe:/proc/self/exe+0x40] [cs]");
}

TEST_CASE("group modifiers are added to each member's own", "[list]") {
  const Events events = ParseList("{cycles:u,instructions}:k");
  CHECK_FALSE(events[0][0].exclude_user);
  CHECK_FALSE(events[0][0].exclude_kernel);
  CHECK(events[0][1].exclude_user);
  CHECK_FALSE(events[0][1].exclude_kernel);
  CHECK(ParseList("{cycles:p,instructions}:pp")[0][0].precise == 3);
  CHECK(ParseList("{cycles}:W")[0][0].weak_group);
}

TEST_CASE("misplaced punctuation is pointed at", "[list]") {
  CHECK(RefusalOfList("") == "event '': an event is missing here");
  CHECK(RefusalOfList("cs,") == "event 'cs,', character 4: an event is missing here");
  CHECK(RefusalOfList("cs,,cs") == "event 'cs,,cs', character 4: an event is missing here");
  CHECK(RefusalOfList("{}") == "event '{}', character 2: an event is missing here");
  CHECK(RefusalOfList("cs,{cs") == "event 'cs,{cs', character 4: a '{' without its '}'");
  CHECK(RefusalOfList("cs}") == "event 'cs}', character 3: a misplaced '}'");
  CHECK(RefusalOfList("{cs}x") == "event '{cs}x', character 5: a misplaced 'x'");
  CHECK(RefusalOfList("{cs,{cs}}") == "event '{cs,{cs}}', character 5: groups hold events, not groups");
  CHECK(RefusalOfList("cs{cs}") == "event 'cs{cs}', character 3: a misplaced '{'");
}

TEST_CASE("errors name the event and its own place", "[list]") {
  CHECK(RefusalOfList("cs,cylces:u,faults").starts_with("event 'cylces:u': no event or PMU is called 'cylces'"));
  CHECK(RefusalOfList("cs,faults:q").starts_with("event 'faults:q', character 8: 'q' is no modifier"));
  CHECK(RefusalOfList("{cs,faults}:q").starts_with("event '{cs,faults}:q', character 13: 'q' is no modifier"));
  CHECK(RefusalOfList("{cs:ppp}:p").starts_with("event 'cs:ppp', character 6: more than three 'p'"));
  CHECK(RefusalOfList("cpu/event=1,cs").find("a '/' without the one") != std::string::npos);
  CHECK(RefusalOfList(std::string(1 << 20, ',')).ends_with("longer than any list of events"));
}

}  // namespace
}  // namespace perfkit

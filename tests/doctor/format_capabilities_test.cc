// The whole text of the report, for capabilities that are made up.
#include <catch2/catch.hpp>
#include <string>

#include "perfkit/capabilities.h"

namespace perfkit {
namespace {

Capability Row(CapabilityId id, std::string_view name, CapabilityState state) {
  return {.id = id,
          .name = name,
          .probe = "opens it",
          .state = state,
          .found = {},
          .cause = {},
          .remedy = {},
          .status = {}};
}

TEST_CASE("the report says yes, no or ?, and explains what is missing", "[capabilities]") {
  Capabilities all;
  all.rows = {Row(CapabilityId::kPerf, "events", CapabilityState::kPresent),
              Row(CapabilityId::kPmu, "counters", CapabilityState::kMissing),
              Row(CapabilityId::kOtherUsers, "others", CapabilityState::kUntried)};
  all.rows[0].found = "three";
  all.rows[1].cause = "this machine has none";
  all.rows[1].remedy =
      "Buy one, of those that have so many that no line of a report can hold the names of all of them.";
  all.rows[1].status = absl::UnavailableError("none");
  all.rows[2].found = "no other user is there";
  all.hints = {"It is a virtual machine."};
  CHECK(FormatCapabilities(all) ==
        "events    yes  three\n"
        "counters  no   this machine has none\n"
        "others    ?    no other user is there\n"
        "\n"
        "What is missing, with remedies\n"
        "\n"
        "counters\n"
        "  tried     opens it\n"
        "  cause     this machine has none\n"
        "  remedy    Buy one, of those that have so many that no line of a report can hold the names of all\n"
        "            of them.\n"
        "\n"
        "About this machine\n"
        "  * It is a virtual machine.\n");
}

TEST_CASE("a report without obstacles is its table alone", "[capabilities]") {
  Capabilities all;
  all.rows = {Row(CapabilityId::kPerf, "events", CapabilityState::kPresent)};
  all.rows[0].found = "three";
  CHECK(FormatCapabilities(all) == "events  yes  three\n");
}

}  // namespace
}  // namespace perfkit

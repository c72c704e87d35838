// A profile whose names try to break out of whatever they are written into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfkit/profile_builder.h"

namespace perfkit::testing {

inline std::vector<std::string> HostileNames() {
  using namespace std::string_literals;
  return {"</script><script>window.broken = 1</script>",
          "<img src=x onerror=\"window.broken = 1\">",
          "--><!-- ]]>",
          "\"'`${window.broken = 1}\\",
          "line\nseparators\r\xe2\x80\xa8 and \xe2\x80\xa9",
          "nul\0inside"s,
          "not UTF-8: \xff\xc0\xaf\xed\xa0\x80 end",
          "__proto__",
          "constructor",
          "@data@",
          "right \xe2\x80\xae to left",
          std::string(5000, 'x')};
}

// One stack for each name, with 1, 2, 3, … samples of weight 10.
inline Profile HostileProfile() {
  ProfileBuilder builder;
  const std::vector<std::string> names = HostileNames();
  builder.profile().program = names[0];
  builder.profile().accounting.notes = names;
  builder.profile().from_ns = 1'000'000, builder.profile().to_ns = 3'000'000;
  uint32_t samples = 0;
  for (const std::string& name : names) {
    const auto event = builder.AddEvent({.name = name});
    const uint32_t thread = builder.AddThread(1, 1 + event, name);
    const uint32_t stack = builder.Stack(ProfileStack::kRoot, builder.Function(name, "/lib/" + name, name, 1));
    builder.AddZone({.from_ns = 1'000'000,
                     .to_ns = 2'000'000,
                     .thread = thread,
                     .name = builder.String(name),
                     .cause = builder.String(name),
                     .is_frame = event % 2 == 0});
    builder.profile().counters.push_back({.name = builder.String(name), .points = {{1'000'000, 1}, {2'000'000, 2}}});
    for (uint32_t i = 0; i <= event; ++i) {
      builder.AddSample({.time_ns = 1'000'000 + ++samples,
                         .weight = 10,
                         .thread = thread,
                         .stack = stack,
                         .label = builder.String(name),
                         .event = event,
                         .quality = StackQuality::kWhole});
    }
  }
  return builder.Take();
}

}  // namespace perfkit::testing

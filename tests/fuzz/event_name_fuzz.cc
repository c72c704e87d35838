// Fuzzes the event parser with text: whatever is written, there is an event or an answer that can be printed.
#include <algorithm>
#include <string_view>
#include <vector>

#include "perfkit/event.h"
#include "src/event/attr.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/event_roots.h"

namespace perfkit {
namespace {

void CheckMessage(const absl::Status& status) {
  const std::string message(status.message());
  PERFKIT_FUZZ_CHECK(message.size() > 10 && message.size() < 4000);
  PERFKIT_FUZZ_CHECK(std::ranges::all_of(message, [](char c) { return c >= ' ' && c <= '~'; }));
}

void CheckEvent(const EventConfig& event) {
  PERFKIT_FUZZ_CHECK(!event.parts.empty());
  for (const EventConfig::Part& part : event.parts) {
    const sys::PerfEventAttr attr = event::ToAttr(event, part);
    PERFKIT_FUZZ_CHECK(attr.size >= 64 && attr.size <= sizeof(attr));
    PERFKIT_FUZZ_CHECK(attr.reserved_1 == 0 && attr.reserved_2 == 0);
  }
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzEventName) {
  static const EventRoots roots = testing::GoldenRoots("kvm_no_pmu");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<EventConfig> event = ParseEvent(text, roots);
  event.ok() ? CheckEvent(*event) : CheckMessage(event.status());
  const absl::StatusOr<std::vector<std::vector<EventConfig>>> list = ParseEventList(text, roots);
  if (!list.ok()) CheckMessage(list.status());
  if (list.ok()) {
    for (const std::vector<EventConfig>& group : *list) std::ranges::for_each(group, CheckEvent);
  }
  return 0;
}

}  // namespace perfkit

// Events given as constants: checked against the table and completed.
#include "absl/strings/str_format.h"
#include "perfkit/event.h"
#include "src/event/generic.h"
#include "src/sys/perf_abi.h"

namespace perfkit {
namespace {

// A constant of the user's may have no name, but errors and tables need one.
std::string NameOf(const EventType& type) {
  if (!type.name.empty()) return std::string(type.name);
  return absl::StrFormat("%d:0x%x", type.type, type.config);
}

// Takes the numbers unchanged, and adds the table's facts about them.
absl::StatusOr<EventConfig> ResolveConstant(const EventType& type, const EventRoots& roots) {
  EventConfig config;
  config.name = NameOf(type);
  if (type.type == sys::kTypeBreakpoint) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("event '%s': a breakpoint has an address and a kind, which a constant cannot "
                                        "say; write it as text: 'mem:0x601040/8:rw'",
                                        config.name));
  }
  event::FillType(type, roots, config);
  return config;
}

}  // namespace

// The text of a constant is only its name and is not parsed, so that any name is accepted.
absl::StatusOr<EventConfig> ResolveEvent(const EventSpec& spec, const EventRoots& roots) {
  return spec.type ? ResolveConstant(*spec.type, roots) : ParseEvent(spec.text, roots);
}

}  // namespace perfkit

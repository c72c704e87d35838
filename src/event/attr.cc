// Fills in an attr. Source of every field: include/uapi/linux/perf_event.h.
#include "src/event/attr.h"

#include <cstdint>

namespace perfkit::event {

// Copies field by field; the modifiers are the same bits under the same names. The caller of perf_event_open finds out
// what this kernel refuses and what this user may not ask for.
sys::PerfEventAttr ToAttr(const EventConfig& config, const EventConfig::Part& part) {
  sys::PerfEventAttr attr{};
  attr.type = part.type;
  attr.config = part.config;
  attr.config1 = part.config1;
  attr.config2 = part.config2;
  attr.config3 = part.config3;
  attr.exclude_user = config.exclude_user;
  attr.exclude_kernel = config.exclude_kernel;
  attr.exclude_hv = config.exclude_hv;
  attr.exclude_host = config.exclude_host;
  attr.exclude_guest = config.exclude_guest;
  attr.exclude_idle = config.exclude_idle;
  attr.pinned = config.pinned;
  attr.exclusive = config.exclusive;
  attr.precise_ip = config.precise_max ? 3 : config.precise & 3;
  attr.bp_type = config.breakpoint_kind;
  // uprobe_path shares its bytes with config1 (kernel/trace/trace_event_perf.c, perf_uprobe_init).
  if (!config.probe_path.empty()) attr.config1 = reinterpret_cast<uintptr_t>(config.probe_path.c_str());
  attr.size = sys::AttrSize(attr);
  return attr;
}

}  // namespace perfkit::event

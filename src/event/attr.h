// The only code that turns a resolved event into the bytes of perf_event_attr.
#pragma once

#include "perfkit/event.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {

// Returns the attr of one part of `config`: the event and its modifiers. The caller adds how it is read (read_format,
// disabled, inherit, sampling), and then calls sys::AttrSize again. For a uprobe, config1 points to config.probe_path:
// `config` must outlive the perf_event_open that uses the attr. 'P' asks for precise_ip 3; the caller lowers it while
// the kernel refuses. 'W' and 'S' concern groups and samples, and have no bit here.
sys::PerfEventAttr ToAttr(const EventConfig& config, const EventConfig::Part& part);

}  // namespace perfkit::event

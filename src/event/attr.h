// The one place that turns a resolved event into the bytes of perf_event_attr.
#pragma once

#include "perfkit/event.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {

// The attr of one part of `config`: what is counted and under which modifiers. How it is read (read_format, disabled,
// inherit, sampling) is the caller's to add; if it adds, it calls sys::AttrSize again.
// For a uprobe, config1 points at config.probe_path: `config` must outlive the perf_event_open that uses the attr.
// 'P' asks for precise_ip 3: the caller lowers it while the kernel refuses. 'W' and 'S' are about groups and samples
// and have no bit here.
sys::PerfEventAttr ToAttr(const EventConfig& config, const EventConfig::Part& part);

}  // namespace perfkit::event

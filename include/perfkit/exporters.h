// Profiles in the formats of other people's viewers: component perfkit::exporters. Link it, and WriteProfile
// (profile_writer.h) supports their extensions; or call a writer with your own sink.
//
// Each writer requires Profile::Check(), streams, and puts the profile's accounting where the viewer shows it.
#pragma once

#include "perfkit/detail/library_only.h"

#include "absl/status/status.h"
#include "perfkit/profile_writer.h"

namespace perfkit {

// pprof's profile.proto, gzipped: every event is a value, the thread and the label are labels, the accounting is in the
// comments. For `go tool pprof`, Grafana Pyroscope, Polar Signals.
absl::Status WritePprof(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Perfetto's TracePackets: samples, zones, counters and waits on one timeline. For ui.perfetto.dev and trace_processor.
absl::Status WritePerfetto(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Firefox's processed profile, version 66, gzipped. For profiler.firefox.com.
absl::Status WriteFirefox(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Chrome's JSON trace events: zones, frames and stacks. For chrome://tracing, DevTools and ui.perfetto.dev.
absl::Status WriteChrome(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// One HTML page that needs nothing else: flame graph, icicle, a track each thread, search. For a browser.
absl::Status WriteHtml(const Profile& profile, const WriteOptions& options, ProfileSink sink);

}  // namespace perfkit

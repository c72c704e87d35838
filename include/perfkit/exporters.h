// Writers of profiles for other viewers: component perfkit::exporters. If it is linked, WriteProfile supports their
// formats. Or call a writer with your own sink.
//
// Requirements, errors and thread rules: as the writers in profile_writer.h. Each writer puts the profile's accounting
// where the viewer shows it.
#pragma once

#include "perfkit/detail/library_only.h"

#include "absl/status/status.h"
#include "perfkit/profile_writer.h"

namespace perfkit {

// Writes pprof's profile.proto, gzipped, for `go tool pprof`, Grafana Pyroscope and Polar Signals. Each event is a
// value; thread, label, task, open zones and frames are labels; the accounting is in the comments.
absl::Status WritePprof(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Writes Perfetto's TracePackets, for ui.perfetto.dev and trace_processor: samples, zones, tasks, counters and waits
// on one timeline.
absl::Status WritePerfetto(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Writes Firefox's processed profile, version 66, gzipped, for profiler.firefox.com.
absl::Status WriteFirefox(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Writes Chrome's JSON trace events, for chrome://tracing, DevTools and ui.perfetto.dev: zones, frames, tasks and
// stacks.
absl::Status WriteChrome(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Writes one self-contained HTML page, for a browser: flame graph, icicle, a track for each thread, search.
absl::Status WriteHtml(const Profile& profile, const WriteOptions& options, ProfileSink sink);

// Write one slow frame (WriteSlowFrame). WriteSlowFrameHtml writes a page: what the frame spent its time on, what all
// threads did in that time, and its flame graph beside that of the frames it is compared with. WriteSlowFramePerfetto
// writes a trace. Require that the indexes of `frame` are in range in `profile`.
absl::Status WriteSlowFrameHtml(const Profile& profile, const SlowFrame& frame, const WriteOptions& options,
                                ProfileSink sink);
absl::Status WriteSlowFramePerfetto(const Profile& profile, const SlowFrame& frame, const WriteOptions& options,
                                    ProfileSink sink);

// Writes the difference of two profiles as a page (WriteDifference). Requires that its indexes are in range, and that
// `nodes` are a tree.
absl::Status WriteDifferenceHtml(const ProfileDifference& difference, const WriteOptions& options, ProfileSink sink);

}  // namespace perfkit

// Writes profiles to files that other programs read.
//
//   absl::Status written = perfkit::WriteProfile(profile, "work.pb.gz");   // by the name's extension
//
// Each writer passes its output to a sink piece by piece, and returns the sink's Status at the first one that is not
// OK. Writers require Profile::Check(), except WriteProfile and WriteSlowFrame, which check. Thread-safe while the
// profile does not change. Errors of all writers: InvalidArgument if WriteOptions::event is no event of the profile
// (Callgrind and HTML ignore it); those of the sink.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit {

struct ProfileDifference;  // profile_difference.h

// Takes the next bytes of a file. A Status other than OK ends the writing.
using ProfileSink = absl::FunctionRef<absl::Status(std::string_view bytes)>;

struct WriteOptions {
  // Name of the event that formats for a single event show, and that pprof shows first; "" means the first one.
  // Perfetto, Callgrind and HTML show all events whatever it is.
  std::string event{};
  // Called from time to time on the writing thread, with a `done` that grows; with 1 once WriteProfile, WriteSlowFrame
  // or WriteDifference has succeeded. `argument` is progress_argument.
  void (*progress)(double done, void* argument) = nullptr;
  void* progress_argument = nullptr;
};

// A file format.
struct ProfileFormat {
  std::string_view name;           // "folded".
  std::string_view extensions[3];  // Of its files: ".folded"; unused ones are empty.
  std::string_view opened_with;    // Programs that open it: "speedscope, flamegraph.pl".
  absl::Status (*write)(const Profile& profile, const WriteOptions& options, ProfileSink sink);
  // Files whose name starts with it also have this format, if no format has their extension: "callgrind.out.".
  std::string_view prefix{};
  // As `write`, for one slow frame (WriteSlowFrame); nullptr if the format can't show one.
  absl::Status (*write_slow_frame)(const Profile& profile, const SlowFrame& frame, const WriteOptions& options,
                                   ProfileSink sink) = nullptr;
  // As `write`, for a difference (WriteDifference); nullptr if the format can't show one.
  absl::Status (*write_difference)(const ProfileDifference& difference, const WriteOptions& options,
                                   ProfileSink sink) = nullptr;
};

// Returns all formats that are linked. The core has folded (.folded), callgrind (.callgrind) and text (.txt); the
// component perfkit::exporters has pprof (.pb.gz .pprof), Perfetto (.pftrace .perfetto-trace), Firefox (.json.gz),
// Chrome (.chrome.json) and HTML (.html).
std::vector<ProfileFormat> ProfileFormats();

// Writes a profile to a file, in the format of its extension (or prefix: "callgrind.out.1234"). Writes to a temporary
// file and renames it when it is complete: readers never see a part, and a failure leaves the old file. Writes to pipes
// and devices directly, if their names have such an extension: for /dev/stdout, call the format's ProfileFormat::write.
// Errors: InvalidArgument if no format has that extension (the message lists them), or if the profile does not pass
// Check(); Unimplemented if the format needs perfkit::exporters, which is not linked; that of a failed system call.
// A pipe without a reader and a file beyond RLIMIT_FSIZE are such errors, too: no SIGPIPE or SIGXFSZ is delivered.
absl::Status WriteProfile(const Profile& profile, const std::string& path, const WriteOptions& options = {});

// Writes one frame of FindSlowFrames, ExplainFrame or on_slow_frame (keep_frames.h) in the format of the file's
// extension, HTML or Perfetto: its explanation, what all threads did from up to two frames before it to its end, and
// the stacks of the frames that it is compared with. Writes to a temporary file first, as WriteProfile.
//
//   absl::Status written = perfkit::WriteSlowFrame(profile, perfkit::FindSlowFrames(profile)[0], "hitch.html");
//
// Errors: as WriteProfile; InvalidArgument if the format can't show a frame (the message lists those that can), or if
// an index of `frame` is out of range in `profile`. O(profile), and for each thread the entries of the frame's time.
absl::Status WriteSlowFrame(const Profile& profile, const SlowFrame& frame, const std::string& path,
                            const WriteOptions& options = {});

// Writes the difference of two profiles in the format of the file's extension. HTML: one page with the flame graph of
// the profile after, coloured by what grew and what shrank (grey: can't be told from noise), and a table of functions.
// Text: FormatReport of the difference. Ignores WriteOptions::event. Writes to a temporary file first, as WriteProfile.
//
//   absl::Status written = perfkit::WriteDifference(*perfkit::Difference(before, after), "change.html");
//
// Errors: as WriteProfile; InvalidArgument if the format can't show a difference (the message lists those that can), or
// if `difference` was not made by Difference: an index is out of range, or `nodes` are no tree.
absl::Status WriteDifference(const ProfileDifference& difference, const std::string& path,
                             const WriteOptions& options = {});

// The writers of the core.

// Writes one line for each stack, root first, with its weight: "main;work;read 12". The outermost "call" is the thread.
absl::Status WriteFolded(const Profile& profile, const WriteOptions& options, ProfileSink sink);
// Writes Callgrind's format, with all events, for callgrind_annotate and kcachegrind. Inlined calls are functions. The
// root is a function "[all]", whose self is the weight of samples without a stack. The "number of calls" of a call is
// its number of samples.
absl::Status WriteCallgrind(const Profile& profile, const WriteOptions& options, ProfileSink sink);
// Writes FormatReport (report.h) as text.
absl::Status WriteReport(const Profile& profile, const WriteOptions& options, ProfileSink sink);

}  // namespace perfkit

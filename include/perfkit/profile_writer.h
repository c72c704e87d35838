// Profiles as files that other programs read.
//
//   perfkit::WriteProfile(profile, "work.pb.gz");   // by the name's extension
//
// Every writer streams: it hands its text to a sink piece by piece, and stops with the sink's Status at the first piece
// that cannot be written. Requires Profile::Check().
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "perfkit/profile.h"

namespace perfkit {

// Takes the next bytes of a file. A Status that is not OK ends the writing.
using ProfileSink = absl::FunctionRef<absl::Status(std::string_view bytes)>;

struct WriteOptions {
  // The event that formats with one value show (folded): an event's name. "": the first one.
  std::string event{};
  // Called now and then with how much is done, from 0 to 1, on the thread that writes. May be empty.
  void (*progress)(double done, void* argument) = nullptr;
  void* progress_argument = nullptr;
};

// A file format: its name, the names of its files, its writer.
struct ProfileFormat {
  std::string_view name;           // "folded"
  std::string_view extensions[3];  // ".folded"; the unused ones are empty
  std::string_view opened_with;    // "speedscope, flamegraph.pl": what people open it with
  absl::Status (*write)(const Profile& profile, const WriteOptions& options, ProfileSink sink);
  // Files whose name begins with it have this format too, if no format has their extension: "callgrind.out.".
  std::string_view prefix{};
};

// All formats that are linked: folded, callgrind and text are the core's; pprof, Perfetto, Firefox, Chrome and HTML the
// component perfkit::exporters'.
std::vector<ProfileFormat> ProfileFormats();

// Writes a profile to a file, in the format that its name ends with (or begins with: "callgrind.out.1234"). The file is
// written aside and renamed when it is whole, so that a reader never sees half of one, and a failure leaves what was
// there. What is no regular file (a pipe, /dev/stdout) is written directly.
// Errors: InvalidArgument if no format has that extension (with all extensions), if options.event is no event of the
// profile, or as Profile::Check(); Unimplemented if the format needs perfkit::exporters and it is not linked; else the
// Status of the system call that failed.
absl::Status WriteProfile(const Profile& profile, const std::string& path, const WriteOptions& options = {});

// The core's writers.

// One line a stack, root first, with its weight: "main;work;read 12". Threads are the outermost "call".
absl::Status WriteFolded(const Profile& profile, const WriteOptions& options, ProfileSink sink);
// Callgrind's format, all events, for callgrind_annotate and kcachegrind. Inlined calls are functions. The calls of a
// function have its total; each stack is called by a function "[all]", whose self are the samples without a stack. The
// "number of calls" of a call is the number of its samples.
absl::Status WriteCallgrind(const Profile& profile, const WriteOptions& options, ProfileSink sink);
// FormatReport (report.h).
absl::Status WriteReport(const Profile& profile, const WriteOptions& options, ProfileSink sink);

}  // namespace perfkit

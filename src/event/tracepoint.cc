// Looks tracepoints up in tracefs (Documentation/trace/events.rst). A tracepoint is a folder events/<group>/<name>,
// whose file `id` is the event's config. tracefs is found by /proc/mounts, at its own mount or below debugfs, and is
// looked up each time, because it may be mounted while the program runs. Names become parts of paths, so they are
// checked before a file is opened. Errors distinguish a missing right from a missing name.
#include "src/event/tracepoint.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"
#include "src/event/suggest.h"
#include "src/sys/files.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {
namespace {

constexpr size_t kLargestIdFile = 4096, kLargestFormatFile = 1 << 20;
constexpr char kMount[] = "as root: mount -t tracefs tracefs /sys/kernel/tracing";
constexpr char kNotMounted[] = "tracefs, where the kernel numbers its tracepoints, is not mounted";

// Names become parts of a path.
bool IsTracepointWord(std::string_view word) {
  return !word.empty() && word.size() < 256 && word.front() != '.' &&
         std::none_of(word.begin(), word.end(), [](char c) { return c == '/' || c == '\0'; });
}

// Parses a line of /proc/mounts: device, mount point, kind, …. Returns the folder of tracefs if the line has it.
std::optional<std::string> TracefsOfMount(std::string_view line) {
  const auto [device, rest] = base::Cut(line, ' ');
  const auto [folder, options] = base::Cut(rest, ' ');
  const std::string_view kind = base::Cut(options, ' ').first;
  if (kind == "tracefs") return std::string(folder);
  // Before Linux 4.1, and if only debugfs is mounted: debugfs mounts tracefs when its folder is entered.
  if (kind == "debugfs") return absl::StrFormat("%s/tracing", folder);
  return std::nullopt;
}

// Returns folders only: tracefs also has files there (enable, filter).
std::vector<std::string> Folders(const std::string& parent, const char* file_within) {
  absl::StatusOr<std::vector<std::string>> names = sys::ListFolder(parent);
  if (!names.ok()) return {};
  std::erase_if(*names, [&](const std::string& name) {
    return !sys::IsReadable(absl::StrFormat("%s/%s/%s", parent, name, file_within));
  });
  return *std::move(names);
}

// tracefs is mounted for root alone, and its files are readable by their group: a mode for all others opens the folders
// only. A number that cannot be read does not mean that the tracepoint is missing.
absl::Status MayNotLook(std::string_view whole, std::string_view group, const std::string& path) {
  return ErrorAt(
      absl::StatusCode::kPermissionDenied, whole, group,
      absl::StrFormat("%s: this user may not read it, so the tracepoint's number is not known. Remedy: run as root, "
                      "or as root: mount -o remount,mode=750,gid=GROUP /sys/kernel/tracing, with a group of this user",
                      path));
}

// Says whether the group exists, and names the nearest.
absl::Status NoSuchTracepoint(std::string_view whole, std::string_view group, std::string_view name,
                              const std::string& tracefs, const EventRoots& roots) {
  if (IsTracepointGroup(group, roots)) {
    const std::vector<std::string> names = TracepointNames(tracefs, std::string(group));
    return MissingAt(whole, name,
                     absl::StrFormat("this kernel has no tracepoint '%s' in group '%s'%s", Printable(name), group,
                                     DidYouMeanOr(name, names, "there are")));
  }
  const std::vector<std::string> elsewhere = TracepointsNamed(name, roots);
  const std::string hint = elsewhere.empty() ? DidYouMean(group, TracepointGroups(tracefs))
                                             : absl::StrFormat("; did you mean '%s'?", Printable(elsewhere.front()));
  return MissingAt(
      whole, group,
      absl::StrFormat("this kernel has no event or tracepoint group called '%s'%s", Printable(group), hint));
}

// tracefs's own mount has priority over debugfs, below which it is visible a second time.
absl::StatusOr<std::string> MountedTracefs(const EventRoots& roots) {
  const absl::StatusOr<std::string> mounts = sys::ReadFile(roots.proc + "/self/mounts");
  if (!mounts.ok()) {
    const absl::Status error(mounts.status().code(),
                             absl::StrFormat("the mounts cannot be read: %s", mounts.status().message()));
    return sys::WithMountRemedy(sys::WithDescriptorRemedy(error), sys::KernelFiles::kProc, roots.proc);
  }
  std::optional<std::string> found;
  base::ForEachPiece(*mounts, '\n', [&](std::string_view line) {
    std::optional<std::string> folder = TracefsOfMount(line);
    if (folder && (!found || line.find(" tracefs ") != std::string_view::npos)) found = std::move(folder);
  });
  if (found) return *std::move(found);
  return absl::Status(absl::StatusCode::kNotFound, absl::StrFormat("%s. Remedy: %s", kNotMounted, kMount));
}

}  // namespace

// Looked up each time: it may have been mounted meanwhile.
absl::StatusOr<std::string> TracefsFolder(const EventRoots& roots) {
  if (!roots.tracefs.empty()) return roots.tracefs;
  return MountedTracefs(roots);
}

// Measured: sched_switch, raw_syscalls and kmem count 0 under exclude_kernel, sys_enter_* count all.
bool IsKernelSideGroup(std::string_view group) { return group != "syscalls"; }

bool MayCountWeight(const EventConfig& event) {
  if (event.parts.size() != 1 || event.parts.front().type != sys::kTypeTracepoint) return false;
  const auto [group, name] = base::Cut(event.name, ':');
  const bool is_named = IsTracepointWord(group) && IsTracepointWord(name) && !base::ParseNumber<uint64_t>(group);
  return !is_named || (group == "sched" && name.starts_with("sched_stat_"));
}

// Looks at the folder alone: its files may be unreadable.
bool IsTracepointGroup(std::string_view group, const EventRoots& roots) {
  const absl::StatusOr<std::string> tracefs = TracefsFolder(roots);
  return tracefs.ok() && IsTracepointWord(group) &&
         sys::ListFolder(absl::StrFormat("%s/events/%s", *tracefs, group)).ok();
}

// The name becomes a path, so a name that could leave the folder is refused before a file is opened.
absl::Status FillTracepoint(std::string_view whole, std::string_view group, std::string_view name,
                            const EventRoots& roots, EventConfig& config) {
  if (name.find_first_of("*?") != std::string_view::npos || group.find_first_of("*?") != std::string_view::npos) {
    return WrongAt(whole, group, "patterns stand for many events; name one ('sched:sched_switch')");
  }
  if (!IsTracepointWord(group) || !IsTracepointWord(name)) {
    return WrongAt(whole, group, "a tracepoint is written 'group:name'");
  }
  const absl::StatusOr<std::string> tracefs = TracefsFolder(roots);
  if (!tracefs.ok()) {
    return ErrorAt(tracefs.status().code(), whole, group,
                   absl::StrFormat("no event is called '%s'; if a tracepoint is meant: %s", Printable(group),
                                   std::string(tracefs.status().message())));
  }
  const std::string path = absl::StrFormat("%s/events/%s/%s/id", *tracefs, group, name);
  const absl::StatusOr<std::string> text = sys::ReadFile(path, kLargestIdFile);
  if (absl::IsPermissionDenied(text.status())) return MayNotLook(whole, group, path);
  if (absl::IsNotFound(text.status())) return NoSuchTracepoint(whole, group, name, *tracefs, roots);
  const std::optional<uint64_t> id = text.ok() ? base::ParseNumber(base::Trim(*text)) : std::nullopt;
  if (!id) {
    return ErrorAt(absl::StatusCode::kFailedPrecondition, whole, group, absl::StrFormat("%s holds no number", path));
  }
  config.parts.push_back({.type = sys::kTypeTracepoint, .config = *id, .pmu = {}, .only_cpus = {}});
  config.kernel_side = IsKernelSideGroup(group);
  return absl::OkStatus();
}

// Parses "group:name", with optional modifiers, as FillTracepoint does.
absl::StatusOr<TracepointFormat> ReadFormat(const EventConfig& event, const EventRoots& roots) {
  const auto [group, rest] = base::Cut(event.name, ':');
  const std::string_view name = base::Cut(rest, ':').first;
  if (event.parts.front().type != sys::kTypeTracepoint || !IsTracepointWord(group) || !IsTracepointWord(name)) {
    return absl::Status(
        absl::StatusCode::kInvalidArgument,
        absl::StrFormat("event '%s' is not written as a tracepoint, 'group:name', so no format is known for it",
                        Printable(event.name)));
  }
  const absl::StatusOr<std::string> tracefs = TracefsFolder(roots);
  if (!tracefs.ok()) return tracefs.status();
  const std::string path = absl::StrFormat("%s/events/%s/%s/format", *tracefs, group, name);
  const absl::StatusOr<std::string> text = sys::ReadFile(path, kLargestFormatFile);
  if (absl::IsPermissionDenied(text.status())) return MayNotLook(event.name, group, path);
  if (!text.ok()) return text.status();
  return TracepointFormat::Parse(*text);
}

// A group has `enable`, a tracepoint `id`.
std::vector<std::string> TracepointGroups(const std::string& tracefs) { return Folders(tracefs + "/events", "enable"); }

std::vector<std::string> TracepointNames(const std::string& tracefs, const std::string& group) {
  return Folders(absl::StrFormat("%s/events/%s", tracefs, group), "id");
}

// The group is often left out, or mistyped.
std::vector<std::string> TracepointsNamed(std::string_view name, const EventRoots& roots) {
  std::vector<std::string> found;
  const absl::StatusOr<std::string> tracefs = TracefsFolder(roots);
  if (!tracefs.ok() || !IsTracepointWord(name)) return found;
  for (const std::string& group : TracepointGroups(*tracefs)) {
    const bool here = sys::IsReadable(absl::StrFormat("%s/events/%s/%s/id", *tracefs, group, name));
    if (here) found.push_back(absl::StrFormat("%s:%s", group, name));
  }
  return found;
}

}  // namespace perfkit::event

namespace perfkit {

absl::StatusOr<TracepointFormat> TracepointFormat::Of(const EventSpec& tracepoint, const EventRoots& roots) {
  const absl::StatusOr<EventConfig> event = ResolveEvent(tracepoint, roots);
  if (!event.ok()) return event.status();
  return event::ReadFormat(*event, roots);
}

}  // namespace perfkit

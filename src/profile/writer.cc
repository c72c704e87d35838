// Files: which format a name asks for, and a file that is either whole or as it was before. Formats are a table of
// functions. Those of perfkit::exporters are found by a weak symbol (formats.h): no registration, no initialiser.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "perfkit/profile_difference.h"
#include "perfkit/profile_writer.h"
#include "src/profile/formats.h"
#include "src/profile/frame_cut.h"
#include "src/sys/new_file.h"

namespace perfkit {
namespace {

absl::Status WriteDifferenceReport(const ProfileDifference& difference, const WriteOptions&, ProfileSink sink) {
  return sink(FormatReport(difference));
}

constexpr ProfileFormat kCoreFormats[] = {
    {"folded", {".folded"}, "speedscope, flamegraph.pl", WriteFolded},
    {"callgrind", {".callgrind"}, "kcachegrind, callgrind_annotate, speedscope", WriteCallgrind, "callgrind.out."},
    {"text", {".txt"}, "any editor", WriteReport, {}, nullptr, WriteDifferenceReport},
};

// Extensions of formats that the component perfkit::exporters has. The core repeats them for one error text: without
// that component nothing else here knows them.
constexpr std::string_view kExporterExtensions[] = {".pb.gz",   ".pprof",       ".pftrace", ".perfetto-trace",
                                                    ".json.gz", ".chrome.json", ".html"};

// The names that programs look for themselves: kcachegrind opens callgrind.out.*, whatever follows.
bool HasPrefix(const ProfileFormat& format, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return !format.prefix.empty() && name.starts_with(format.prefix);
}

bool HasExtension(const ProfileFormat& format, std::string_view path) {
  for (const std::string_view extension : format.extensions) {
    if (!extension.empty() && path.ends_with(extension)) return true;
  }
  return false;
}

// Returns the extensions of all formats that have `writer`, a member of ProfileFormat, each after a space.
template <class Writer>
std::string Extensions(Writer writer) {
  std::string extensions;
  for (const ProfileFormat& format : ProfileFormats()) {
    for (const std::string_view extension : format.extensions) {
      if (format.*writer != nullptr && !extension.empty()) extensions += absl::StrFormat(" %s", extension);
    }
  }
  return extensions;
}

// Returns why no file can be written. `found`: the format that the path asks for, or nullptr; it does not show `what`.
// `extensions`: of the formats that do, from Extensions.
absl::Status NoFormat(std::string_view what, std::string_view path, const ProfileFormat* found,
                      const std::string& extensions) {
  const auto* const exporters =
      std::ranges::find_if(kExporterExtensions, [&](auto end) { return path.ends_with(end); });
  if (found == nullptr && exporters != std::end(kExporterExtensions)) {
    const std::string others = extensions.empty() ? "" : ", or choose one of" + extensions;
    return absl::Status(
        absl::StatusCode::kUnimplemented,
        absl::StrFormat("cannot write %s: \"%s\" is a format of the component perfkit::exporters, which "
                        "is not linked. Remedy: link it%s",
                        path, *exporters, others));
  }
  if (extensions.empty()) {
    return absl::Status(
        absl::StatusCode::kUnimplemented,
        absl::StrFormat("cannot write %s: only formats of the component perfkit::exporters show %s, and it is not "
                        "linked. Remedy: link it",
                        path, what));
  }
  const std::string why = found != nullptr ? absl::StrFormat("the format %s does not show %s", found->name, what)
                                           : std::string("no format has that extension");
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("cannot write '%s': %s. Remedy: choose one of%s", path, why, extensions));
}

// Returns the format that the path asks for, which shows `what`: it has `writer`, a member of ProfileFormat.
template <class Writer>
absl::StatusOr<ProfileFormat> FormatWith(Writer writer, std::string_view what, std::string_view path) {
  const std::vector<ProfileFormat> formats = ProfileFormats();
  const ProfileFormat* found = nullptr;
  for (const auto asks_for : {HasExtension, HasPrefix}) {
    for (const ProfileFormat& format : formats) {
      if (found == nullptr && asks_for(format, path)) found = &format;
    }
  }
  if (found != nullptr && found->*writer != nullptr) return *found;
  return NoFormat(what, path, found, Extensions(writer));
}

// Its nodes are a tree of known functions, parents before their children.
absl::Status CheckDifference(const ProfileDifference& difference) {
  for (size_t i = 0; i < difference.nodes.size(); ++i) {
    const ProfileDifference::Node& node = difference.nodes[i];
    const bool is_root = i == 0 && node.parent == 0 && node.function == UINT32_MAX;
    const bool is_call = node.parent < i && node.function < difference.functions.size();
    bool is_whole = is_root || is_call;
    for (uint32_t k = 0; k < node.children && is_whole; ++k) {
      const uint64_t child = uint64_t{node.first_child} + k;
      is_whole = child > i && child < difference.nodes.size() && difference.nodes[child].parent == i;
    }
    if (is_whole) continue;
    return absl::Status(
        absl::StatusCode::kInvalidArgument,
        absl::StrFormat("cannot write the difference: its node %d has no parent, no function or no such children", i));
  }
  return absl::OkStatus();
}

// Formats have reached their end before the file has: until that is written and in its folder, all is not done.
// `asked` must outlive the result.
WriteOptions WhileWriting(const WriteOptions& asked) {
  WriteOptions options = asked;
  if (asked.progress == nullptr) return options;
  options.progress_argument = const_cast<WriteOptions*>(&asked);
  options.progress = [](double done, void* argument) {
    const WriteOptions& to = *static_cast<const WriteOptions*>(argument);
    if (done < 1) to.progress(done, to.progress_argument);
  };
  return options;
}

absl::Status Finish(const WriteOptions& options, const absl::Status& status) {
  if (status.ok() && options.progress != nullptr) options.progress(1, options.progress_argument);
  return status;
}

}  // namespace

absl::StatusOr<ProfileFormat> FormatOf(std::string_view path) {
  return FormatWith(&ProfileFormat::write, "a profile", path);
}

std::vector<ProfileFormat> ProfileFormats() {
  std::vector<ProfileFormat> formats(std::begin(kCoreFormats), std::end(kCoreFormats));
  if (const ExporterFormats* const exporters = &ExporterFormatTable; exporters != nullptr) {
    formats.insert(formats.end(), exporters->formats, exporters->formats + exporters->count);
  }
  return formats;
}

absl::Status WriteProfile(const Profile& profile, const std::string& path, const WriteOptions& options) {
  const absl::StatusOr<ProfileFormat> format = FormatOf(path);
  if (!format.ok()) return format.status();
  if (absl::Status status = profile.Check(); !status.ok()) return status;
  const absl::Status status =
      sys::WriteFile(path, [&](sys::ByteSink sink) { return format->write(profile, WhileWriting(options), sink); });
  return Finish(options, status);
}

absl::Status WriteSlowFrame(const Profile& profile, const SlowFrame& frame, const std::string& path,
                            const WriteOptions& options) {
  const absl::StatusOr<ProfileFormat> format = FormatWith(&ProfileFormat::write_slow_frame, "a single frame", path);
  if (!format.ok()) return format.status();
  if (absl::Status status = profile.Check(); !status.ok()) return status;
  if (absl::Status status = profile::CheckFrame(profile, frame); !status.ok()) return status;
  const absl::Status status = sys::WriteFile(
      path, [&](sys::ByteSink sink) { return format->write_slow_frame(profile, frame, WhileWriting(options), sink); });
  return Finish(options, status);
}

absl::Status WriteDifference(const ProfileDifference& difference, const std::string& path,
                             const WriteOptions& options) {
  const absl::StatusOr<ProfileFormat> format = FormatWith(&ProfileFormat::write_difference, "a difference", path);
  if (!format.ok()) return format.status();
  if (absl::Status status = CheckDifference(difference); !status.ok()) return status;
  const absl::Status status = sys::WriteFile(
      path, [&](sys::ByteSink sink) { return format->write_difference(difference, WhileWriting(options), sink); });
  return Finish(options, status);
}

}  // namespace perfkit

// FormatReport and WriteProfile.
#include "report.h"

#include <absl/strings/str_format.h>
#include <perfkit/profile_writer.h>
#include <perfkit/report.h>

#include <string>
#include <string_view>

namespace record {
namespace {

bool IsWritten(const perfkit::ProfileFormat& format, std::string_view path) {
  for (const std::string_view extension : format.extensions) {
    if (!extension.empty() && path.ends_with(extension)) return true;
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return !format.prefix.empty() && name.starts_with(format.prefix);
}

}  // namespace

absl::Status CheckOutputs(const Options& options) {
  for (const std::string& path : options.outputs) {
    bool is_written = false;
    std::string extensions;
    for (const perfkit::ProfileFormat& format : perfkit::ProfileFormats()) {
      is_written = is_written || IsWritten(format, path);
      extensions += absl::StrFormat(" %s", format.extensions[0]);
    }
    if (!is_written) {
      return absl::InvalidArgumentError(
          absl::StrFormat("-o wants a name with one of the extensions%s: '%s'", extensions, path));
    }
  }
  return absl::OkStatus();
}

absl::Status Report(const Options& options, const perfkit::Profile& profile, tool::Output& output) {
  perfkit::ReportOptions report = options.report;
  for (const perfkit::ProfileEvent& event : profile.events) {
    report.event = event.name;
    output.Write(perfkit::FormatReport(profile, report));
    report.accounting = false;  // the first report has that of all events
  }
  output.Flush();
  for (const std::string& path : options.outputs) {
    if (absl::Status status = perfkit::WriteProfile(profile, path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace record

// One HTML page: the viewer, and the profile inside it as gzipped JSON in base64. Nothing of the profile stands in the
// page as text, so that no name in it can be taken for HTML.
#include "absl/functional/function_ref.h"
#include "perfkit/exporters.h"
#include "src/exporters/base64_sink.h"
#include "src/exporters/gzip_sink.h"
#include "src/exporters/html_data.h"
#include "src/exporters/html_difference.h"
#include "src/exporters/html_page.h"
#include "src/exporters/html_slow_frame.h"
#include "src/exporters/json_writer.h"

namespace perfkit {
namespace {

// Calls `write_data` with the writer of the page's data.
absl::Status WritePage(ProfileSink sink, absl::FunctionRef<void(exporters::JsonWriter&)> write_data) {
  if (absl::Status status = sink(exporters::kPageBeforeData); !status.ok()) return status;
  exporters::Base64Sink base64(sink);
  const auto encode = [&](std::string_view bytes) { return base64.Write(bytes); };
  constexpr int kSmallest = 9;
  exporters::GzipSink gzip(encode, kSmallest);
  const auto compress = [&](std::string_view bytes) { return gzip.Write(bytes); };
  profile::SinkBuffer out(compress);
  exporters::JsonWriter json(out);
  write_data(json);
  if (absl::Status status = out.Finish(); !status.ok()) return status;
  if (absl::Status status = gzip.Finish(); !status.ok()) return status;
  if (absl::Status status = base64.Finish(); !status.ok()) return status;
  for (const std::string_view piece : exporters::kPageAfterData) {
    if (absl::Status status = sink(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteHtml(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  return WritePage(sink, [&](exporters::JsonWriter& json) { exporters::WriteHtmlData(profile, options, json); });
}

absl::Status WriteSlowFrameHtml(const Profile& profile, const SlowFrame& frame, const WriteOptions& options,
                                ProfileSink sink) {
  const profile::FrameCut cut = profile::CutFrame(profile, frame, profile::References::kTake);
  return WritePage(sink, [&](exporters::JsonWriter& json) {
    exporters::WriteHtmlData(cut.profile, options, json, [&] { exporters::WriteHtmlSlowFrame(cut, json); });
  });
}

absl::Status WriteDifferenceHtml(const ProfileDifference& difference, const WriteOptions&, ProfileSink sink) {
  return WritePage(sink, [&](exporters::JsonWriter& json) { exporters::WriteHtmlDifference(difference, json); });
}

}  // namespace perfkit

// Gathers small pieces of a file, and hands them on in pieces of about 64 KiB: sinks are called, and system calls made,
// rarely, and memory stays bounded.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/profile_writer.h"

namespace perfkit::profile {

// After a failure of the sink, everything that is added is dropped: Finish() has the Status.
class SinkBuffer {
 public:
  explicit SinkBuffer(ProfileSink sink) : sink_(sink) {}

  void Add(std::string_view text) {
    if (!status_.ok()) return;
    buffer_.append(text);
    if (buffer_.size() >= kBytes) Flush();
  }
  bool failed() const { return !status_.ok(); }

  // Hands on what is left. Returns the first error of the sink.
  absl::Status Finish() {
    Flush();
    return status_;
  }

 private:
  static constexpr size_t kBytes = 64 << 10;

  void Flush() {
    if (status_.ok() && !buffer_.empty()) status_ = sink_(buffer_);
    buffer_.clear();
  }

  ProfileSink sink_;
  std::string buffer_;
  absl::Status status_;
};

}  // namespace perfkit::profile

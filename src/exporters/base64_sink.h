// Writes bytes as base64 on their way to a sink (RFC 4648).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/profile_writer.h"

namespace perfkit::exporters {

// Hands on four letters for each three bytes. Each call returns the sink's Status. Not thread-safe.
class Base64Sink {
 public:
  explicit Base64Sink(ProfileSink sink) : sink_(sink) {}

  absl::Status Write(std::string_view bytes) {
    text_.clear();
    for (const char byte : bytes) {
      rest_[size_++] = static_cast<unsigned char>(byte);
      if (size_ == sizeof(rest_)) Encode();
    }
    return text_.empty() ? absl::OkStatus() : sink_(text_);
  }

  // Writes the one or two bytes that are left, with their padding. Nothing may be added afterwards.
  absl::Status Finish() {
    if (size_ == 0) return absl::OkStatus();
    const size_t left = size_;
    while (size_ < sizeof(rest_)) rest_[size_++] = 0;
    text_.clear();
    Encode();
    for (size_t i = left + 1; i < 4; ++i) text_[i] = '=';
    return sink_(text_);
  }

 private:
  void Encode() {
    constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned bits = unsigned{rest_[0]} << 16 | unsigned{rest_[1]} << 8 | rest_[2];
    for (int shift = 18; shift >= 0; shift -= 6) text_ += kLetters[bits >> shift & 63];
    size_ = 0;
  }

  ProfileSink sink_;
  std::string text_;
  unsigned char rest_[3] = {};
  size_t size_ = 0;
};

}  // namespace perfkit::exporters

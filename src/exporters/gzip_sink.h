// Compresses a file on its way to a sink.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/profile_writer.h"

namespace perfkit::exporters {

// Hands on what it is given as one gzip stream (RFC 1952), in pieces of at most 64 KiB. The same input, in whatever
// pieces, gives the same bytes. Memory: about 330 KiB, however long the file is.
//
//   GzipSink gzip(sink);
//   const auto compress = [&](std::string_view bytes) { return gzip.Write(bytes); };   // a ProfileSink
//   profile::SinkBuffer out(compress);                                                 // ... write to `out` ...
//   if (absl::Status status = out.Finish(); !status.ok()) return status;
//   return gzip.Finish();                                                              // or the file is not whole
//
// After an error everything that is added is dropped, and each call returns that error again. Not thread-safe.
class GzipSink {
 public:
  // `sink` refers to a function that has to outlive this object. `level`: zlib's, from 1 (fast) to 9 (small).
  explicit GzipSink(ProfileSink sink, int level = 6);
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;
  ~GzipSink();

  // Errors: the sink's; ResourceExhausted if zlib had no memory.
  absl::Status Write(std::string_view bytes);
  // Compresses what is left, and ends the stream. Nothing may be added afterwards.
  absl::Status Finish();

 private:
  static constexpr size_t kPieceBytes = 64 << 10;

  void Deflate(std::string_view bytes, int flush);
  void HandOn(size_t size);

  ProfileSink sink_;
  z_stream stream_{};
  absl::Status status_;
  std::string piece_;
};

}  // namespace perfkit::exporters

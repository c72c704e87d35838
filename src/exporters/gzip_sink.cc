// Gzip by zlib, a piece at a time. zlib writes into piece_ until it is full, then it is handed on and used again:
// output pieces have nothing to do with input pieces, so the file does not depend on how it was cut.
#include "src/exporters/gzip_sink.h"

namespace perfkit::exporters {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header and trailer (zlib.h: deflateInit2)
constexpr int kMemoryLevel = 8;
constexpr size_t kMaxInput = 1 << 30;  // avail_in has 32 bits

}  // namespace

GzipSink::GzipSink(ProfileSink sink, int level) : sink_(sink), piece_(kPieceBytes, '\0') {
  if (deflateInit2(&stream_, level, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    status_ = absl::Status(absl::StatusCode::kResourceExhausted,
                           "cannot compress: zlib has no memory. Remedy: free some, or write an uncompressed format.");
    return;
  }
  stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
  stream_.avail_out = kPieceBytes;
}

GzipSink::~GzipSink() { deflateEnd(&stream_); }

absl::Status GzipSink::Write(std::string_view bytes) {
  while (!bytes.empty() && status_.ok()) {
    const std::string_view some = bytes.substr(0, kMaxInput);
    Deflate(some, Z_NO_FLUSH);
    bytes.remove_prefix(some.size());
  }
  return status_;
}

absl::Status GzipSink::Finish() {
  if (status_.ok()) Deflate({}, Z_FINISH);
  if (status_.ok() && stream_.avail_out < kPieceBytes) HandOn(kPieceBytes - stream_.avail_out);
  return status_;
}

void GzipSink::Deflate(std::string_view bytes, int flush) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
  stream_.avail_in = static_cast<uInt>(bytes.size());
  // Z_BUF_ERROR is "nothing to do": no error. The others can't be, as the stream is ours alone (zlib.h: deflate).
  while (deflate(&stream_, flush) != Z_STREAM_ERROR && status_.ok() && stream_.avail_out == 0) HandOn(kPieceBytes);
}

void GzipSink::HandOn(size_t size) {
  status_ = sink_(std::string_view(piece_).substr(0, size));
  stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
  stream_.avail_out = kPieceBytes;
}

}  // namespace perfkit::exporters

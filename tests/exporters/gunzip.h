// What a gzip file holds.
#pragma once

#include <zlib.h>

#include <optional>
#include <string>

namespace perfkit::testing {

// The content of `file`; nullopt if it is not exactly one whole gzip stream.
inline std::optional<std::string> Gunzip(std::string file) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(file.data());
  stream.avail_in = static_cast<uInt>(file.size());
  std::string content;
  std::string piece(1 << 16, '\0');
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    result = inflate(&stream, Z_NO_FLUSH);
    content.append(piece, 0, piece.size() - stream.avail_out);
  }
  const bool whole = result == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) return std::nullopt;
  return content;
}

}  // namespace perfkit::testing

// PNG (ISO/IEC 15948): a signature and three chunks. Its pixel data is a zlib stream (RFC 1950) of deflate blocks
// (RFC 1951); a "stored" block is the bytes as they are after a 5-byte header, so no compressor is needed.
//
//   signature  IHDR(size, 8-bit RGB)  IDAT(zlib header, stored blocks of rows, Adler-32)  IEND
#include "png.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

namespace game {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxStored = 65535;  // bytes in a stored block: its length has 16 bits

void Put32(Bytes& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

// CRC-32 of ISO 3309, bit by bit backwards (PNG, annex D), one table look-up a byte.
uint32_t Crc32(std::span<const uint8_t> bytes) {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320u : 0);
  }
  uint32_t crc = ~0u;
  for (uint8_t byte : bytes) crc = table[(crc ^ byte) & 255] ^ (crc >> 8);
  return ~crc;
}

// RFC 1950, section 8.2: two sums modulo the largest prime below 2^16.
uint32_t Adler32(std::span<const uint8_t> bytes) {
  uint32_t a = 1, b = 0;
  for (uint8_t byte : bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

void PutChunk(Bytes& out, std::string_view type, const Bytes& data) {
  Put32(out, static_cast<uint32_t>(data.size()));
  const size_t checked = out.size();  // the CRC covers type and data
  out.insert(out.end(), type.begin(), type.end());
  out.insert(out.end(), data.begin(), data.end());
  Put32(out, Crc32(std::span(out).subspan(checked)));
}

// Each row with the filter byte that PNG wants before it: 0, as it is.
Bytes FilterRows(uint32_t width, uint32_t height, std::span<const uint8_t> rgb) {
  Bytes rows;
  rows.reserve(size_t{height} * (1 + 3 * size_t{width}));
  for (uint32_t y = 0; y < height; ++y) {
    rows.push_back(0);
    const auto row = rgb.subspan(size_t{y} * width * 3, size_t{width} * 3);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

Bytes ZlibStored(const Bytes& data) {
  Bytes out{0x78, 0x01};  // 32 KiB window, fastest; the two bytes are a multiple of 31
  for (size_t at = 0; at < data.size(); at += kMaxStored) {
    const size_t size = std::min(kMaxStored, data.size() - at);
    out.push_back(at + size == data.size());  // final block?
    for (size_t word : {size, ~size}) {
      out.push_back(static_cast<uint8_t>(word));
      out.push_back(static_cast<uint8_t>(word >> 8));
    }
    out.insert(out.end(), data.begin() + static_cast<ptrdiff_t>(at), data.begin() + static_cast<ptrdiff_t>(at + size));
  }
  Put32(out, Adler32(data));
  return out;
}

}  // namespace

bool WritePng(const std::string& path, uint32_t width, uint32_t height, std::span<const uint8_t> rgb) {
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header;
  Put32(header, width);
  Put32(header, height);
  header.insert(header.end(), {8, 2, 0, 0, 0});  // bits a channel, RGB, deflate, the five filters, no interlacing
  PutChunk(file, "IHDR", header);
  PutChunk(file, "IDAT", ZlibStored(FilterRows(width, height, rgb)));
  PutChunk(file, "IEND", {});

  FILE* stream = std::fopen(path.c_str(), "wb");
  if (stream == nullptr) return false;
  const bool written = std::fwrite(file.data(), 1, file.size(), stream) == file.size();
  return std::fclose(stream) == 0 && written;
}

}  // namespace game

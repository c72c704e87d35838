// Writes a picture as a PNG file, with no library: the pixels are stored, not compressed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace game {

// `rgb`: 3 bytes a pixel, rows from top to bottom. False, with errno set, when the file cannot be written.
bool WritePng(const std::string& path, uint32_t width, uint32_t height, std::span<const uint8_t> rgb);

}  // namespace game

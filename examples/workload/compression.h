// What is sampled: zstd, linked statically, so that its functions are the program's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace workload {

// Returns this machine's C and C++ headers as one text of at most `max_bytes`; generated text if there are none.
std::string ReadCorpus(size_t max_bytes);

// Compresses blocks of a text, each block at another level, from fast match finders to thorough ones. Not thread-safe:
// each thread has its own.
class Compressor {
 public:
  Compressor();
  Compressor(Compressor&&) noexcept;
  ~Compressor();

  static size_t Blocks(std::string_view text);
  // Returns the number of compressed bytes; 0 if zstd refuses.
  size_t Compress(std::string_view text, size_t block);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Compresses the blocks of a text again and again until `stop`. Counts in `blocks`. Returns an error, or "".
std::string CompressBlocks(const std::atomic<bool>& stop, std::atomic<uint64_t>& blocks);

}  // namespace workload

// Something to sample: many threads that compress real text by zstd, over and over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace record {

// This machine's C and C++ headers, as one text of at most `most` bytes; where there are none, generated text.
std::string ReadCorpus(size_t most);

// What has been done so far. Read and written by any thread: numbers for people, in no order with anything else.
struct Progress {
  std::atomic<uint64_t> bytes_in{0}, bytes_out{0};
};

// Compresses blocks of `corpus` on `workers` threads of TBB until `stop`, each block by another level.
void CompressUntil(const std::atomic<bool>& stop, const std::string& corpus, int workers, Progress& progress);

}  // namespace record

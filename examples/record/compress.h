// Something to sample: many threads that compress real text by zstd, over and over.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace record {

// This machine's C and C++ headers, as one text of at most `most` bytes; where there are none, generated text.
std::string ReadCorpus(size_t most);

// Compresses blocks of `corpus` on `workers` threads of TBB until `stop`, each block by another level.
void CompressUntil(const std::atomic<bool>& stop, const std::string& corpus, int workers);

}  // namespace record

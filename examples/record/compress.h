// Something to sample: many threads that compress real text by zstd, over and over.
#pragma once

#include <atomic>
#include <string>

namespace record {

// Compresses blocks of `corpus` on `workers` threads of TBB until `stop`.
void CompressUntil(const std::atomic<bool>& stop, const std::string& corpus, int workers);

}  // namespace record

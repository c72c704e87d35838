// TBB hands out blocks.
#include "compress.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "workload/compression.h"

namespace record {

void CompressUntil(const std::atomic<bool>& stop, const std::string& corpus, int workers) {
  tbb::enumerable_thread_specific<workload::Compressor> compressors;
  tbb::task_arena arena(workers);
  const auto compress = [&](size_t block) {
    if (!stop.load(std::memory_order_relaxed)) compressors.local().Compress(corpus, block);
  };
  while (!stop.load(std::memory_order_relaxed)) {
    arena.execute([&] { tbb::parallel_for(size_t{0}, workload::Compressor::Blocks(corpus), compress); });
  }
}

}  // namespace record

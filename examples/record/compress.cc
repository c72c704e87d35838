// TBB hands out blocks; zstd, linked statically, does the work: its functions are this program's own.
#include "compress.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

namespace record {
namespace {

constexpr size_t kBlockBytes = 256 << 10;
// From the fast match finders to the thorough ones.
constexpr int kLevels[] = {1, 2, 3, 5, 7, 9};

// What one worker keeps from block to block.
struct Worker {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::vector<char> out = std::vector<char>(ZSTD_compressBound(kBlockBytes));
};

// Words that a generator of numbers picks: compresses like text.
std::string Generate(size_t size) {
  constexpr const char* kWords[] = {"sample ", "ring ", "record ", "event ", "thread ", "clock ", "stack ", "\n"};
  std::string text;
  for (uint64_t state = 1; text.size() < size; state = state * 6364136223846793005u + 1442695040888963407u) {
    text += kWords[state >> 61];
  }
  return text;
}

}  // namespace

std::string ReadCorpus(size_t most) {
  namespace fs = std::filesystem;
  std::string text;
  std::error_code error;
  fs::recursive_directory_iterator at("/usr/include", fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end && text.size() < most; at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    std::ifstream file(at->path(), std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  text.resize(std::min(text.size(), most));
  return text.size() >= kBlockBytes ? text : Generate(most);
}

void CompressUntil(const std::atomic<bool>& stop, const std::string& corpus, int workers) {
  tbb::enumerable_thread_specific<Worker> per_thread;
  tbb::task_arena arena(workers);
  const size_t blocks = (corpus.size() + kBlockBytes - 1) / kBlockBytes;
  const auto compress = [&](size_t block) {
    if (stop.load(std::memory_order_relaxed)) return;
    Worker& worker = per_thread.local();
    const size_t at = block * kBlockBytes, size = std::min(kBlockBytes, corpus.size() - at);
    const int level = kLevels[block % std::size(kLevels)];
    ZSTD_compressCCtx(worker.context.get(), worker.out.data(), worker.out.size(), corpus.data() + at, size, level);
  };
  while (!stop.load(std::memory_order_relaxed)) {
    arena.execute([&] { tbb::parallel_for(size_t{0}, blocks, compress); });
  }
}

}  // namespace record

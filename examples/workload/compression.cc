// Blocks of text for zstd.
#include "workload/compression.h"

#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace workload {
namespace {

constexpr size_t kBlockBytes = 256 << 10, kCorpusBytes = 2 << 20;
// From the fast match finders to the thorough ones.
constexpr int kLevels[] = {1, 2, 3, 5, 7, 9};

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

std::string ReadCorpus(size_t max_bytes) {
  namespace fs = std::filesystem;
  std::string text;
  std::error_code error;
  fs::recursive_directory_iterator at("/usr/include", fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end && text.size() < max_bytes; at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    std::ifstream file(at->path(), std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  text.resize(std::min(text.size(), max_bytes));
  return text.size() >= kBlockBytes ? text : Generate(max_bytes);
}

struct Compressor::State {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::vector<char> out = std::vector<char>(ZSTD_compressBound(kBlockBytes));
};

Compressor::Compressor() : state_(std::make_unique<State>()) {}
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor::~Compressor() = default;

size_t Compressor::Blocks(std::string_view text) { return (text.size() + kBlockBytes - 1) / kBlockBytes; }

size_t Compressor::Compress(std::string_view text, size_t block) {
  const std::string_view bytes = text.substr(block * kBlockBytes, kBlockBytes);
  const int level = kLevels[block % std::size(kLevels)];
  std::vector<char>& out = state_->out;
  const size_t size =
      ZSTD_compressCCtx(state_->context.get(), out.data(), out.size(), bytes.data(), bytes.size(), level);
  return ZSTD_isError(size) != 0 ? 0 : size;
}

std::string CompressBlocks(const std::atomic<bool>& stop, std::atomic<uint64_t>& blocks) {
  const std::string corpus = ReadCorpus(kCorpusBytes);
  Compressor compressor;
  for (size_t block = 0; !stop; block = (block + 1) % Compressor::Blocks(corpus)) {
    if (compressor.Compress(corpus, block) == 0) return "zstd compresses nothing";
    blocks.fetch_add(1, std::memory_order_relaxed);
  }
  return "";
}

}  // namespace workload

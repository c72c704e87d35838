// Decompresses with liblzma, piece by piece, so that a small section that claims or holds gigabytes ends at a limit.
// The library is loaded at the first use: libdw itself loads it, but decompresses only whole files, without a limit.
#include "src/symbolize/dwarf/mini_debug_info.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"

namespace perfkit::symbolize::dwarf {
namespace {

// lzma_stream of liblzma. Members from `allocator` on are reserved or the library's own. All start as 0.
struct LzmaStream {
  const std::byte* next_in = nullptr;
  size_t avail_in = 0;
  uint64_t total_in = 0;
  char* next_out = nullptr;
  size_t avail_out = 0;
  uint64_t total_out = 0;
  const void* allocator = nullptr;
  void* internal = nullptr;
  void* reserved_pointers[4] = {};
  uint64_t reserved_numbers[4] = {};
  int reserved_enums[2] = {};
};
static_assert(sizeof(LzmaStream) == 136);

// Return codes (lzma_ret) and the action (lzma_action).
constexpr int kOk = 0, kStreamEnd = 1, kMemoryError = 5, kMemoryLimit = 6;
constexpr int kRun = 0;

struct Lzma {
  int (*stream_decoder)(LzmaStream* stream, uint64_t memory_limit, uint32_t flags) = nullptr;
  int (*code)(LzmaStream* stream, int action) = nullptr;
  void (*end)(LzmaStream* stream) = nullptr;

  bool complete() const { return stream_decoder != nullptr && code != nullptr && end != nullptr; }
};

template <class Function>
void FindInLzma(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
}

// The library stays loaded.
const Lzma& LoadLzma() {
  static const Lzma loaded = [] {
    Lzma lzma;
    void* const library = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return lzma;
    FindInLzma(library, "lzma_stream_decoder", lzma.stream_decoder);
    FindInLzma(library, "lzma_code", lzma.code);
    FindInLzma(library, "lzma_end", lzma.end);
    return lzma;
  }();
  return loaded;
}

absl::Status TooLarge(const char* what, uint64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrFormat(".gnu_debugdata %s more than %d MiB: it is damaged or hostile", what, bytes >> 20));
}

absl::Status Explain(int code) {
  if (code == kMemoryError) return absl::ResourceExhaustedError(".gnu_debugdata can't be decompressed: out of memory");
  if (code == kMemoryLimit) return TooLarge("needs, to be decompressed,", kMaxXzMemory);
  return absl::InvalidArgumentError(".gnu_debugdata can't be decompressed: it is damaged, or not in xz's format");
}

}  // namespace

absl::StatusOr<std::string> UnpackMini(base::Bytes packed) {
  constexpr size_t kFirst = size_t{1} << 20;
  const Lzma& lzma = LoadLzma();
  if (!lzma.complete()) return absl::UnavailableError(".gnu_debugdata can't be decompressed without liblzma.so.5");
  LzmaStream stream{.next_in = packed.data(), .avail_in = packed.size()};
  if (const int begun = lzma.stream_decoder(&stream, kMaxXzMemory, 0); begun != kOk) return Explain(begun);
  const std::unique_ptr<LzmaStream, void (*)(LzmaStream*)> ends(&stream, lzma.end);
  std::string unpacked;
  for (int code = kOk; code != kStreamEnd;) {
    if (stream.avail_out == 0) {
      const size_t size = unpacked.size();
      if (size >= kMaxMiniBytes) return TooLarge("decompresses to", kMaxMiniBytes);
      unpacked.resize(std::min<size_t>(std::max(kFirst, 2 * size), kMaxMiniBytes));
      stream.next_out = unpacked.data() + size;
      stream.avail_out = unpacked.size() - size;
    }
    code = lzma.code(&stream, kRun);
    if (code != kOk && code != kStreamEnd) return Explain(code);
    // The input is used up, and there is room for more: the end is missing. The library says so in its next call.
  }
  unpacked.resize(stream.total_out);
  return unpacked;
}

}  // namespace perfkit::symbolize::dwarf

// Decompresses with libzstd, which is loaded at the first use: most programs never see a section that needs it.
#include "src/unwind/dwarf/cfi/unzstd.h"

#include <dlfcn.h>

#include "absl/status/status.h"

namespace perfkit::unwind {
namespace {

// Functions of zstd 1.0 and later. Without an error, `decompress` returns the number of bytes that it wrote.
struct Zstd {
  size_t (*decompress)(void* to, size_t capacity, const void* from, size_t size) = nullptr;
  unsigned (*is_error)(size_t code) = nullptr;

  bool complete() const { return decompress != nullptr && is_error != nullptr; }
};

// The library stays loaded.
const Zstd& LoadZstd() {
  static const Zstd loaded = [] {
    Zstd zstd;
    void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return zstd;
    zstd.decompress = reinterpret_cast<decltype(zstd.decompress)>(dlsym(library, "ZSTD_decompress"));
    zstd.is_error = reinterpret_cast<decltype(zstd.is_error)>(dlsym(library, "ZSTD_isError"));
    return zstd;
  }();
  return loaded;
}

}  // namespace

// The result has room for `size` bytes and no more, so that a hostile section ends there. ZSTD_decompress writes
// straight into it and needs no window of its own, whatever window the section asks for.
absl::StatusOr<std::vector<std::byte>> Unzstd(base::Bytes packed, size_t size) {
  const Zstd& zstd = LoadZstd();
  if (!zstd.complete()) {
    return absl::UnavailableError(
        "is compressed by zstd, and there is no libzstd.so.1. Remedy: install it (Debian: libzstd1)");
  }
  std::vector<std::byte> bytes(size);
  const size_t done = zstd.decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (zstd.is_error(done) != 0 || done != size) {
    return absl::InvalidArgumentError("is damaged: it is not in zstd's format, or of another size than it claims");
  }
  return bytes;
}

}  // namespace perfkit::unwind

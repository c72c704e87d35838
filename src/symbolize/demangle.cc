// Asks the C++ runtime (Itanium C++ ABI, 3.4), but for Rust's names, of which the older ones look like C++'s.
#include "src/symbolize/demangle.h"

#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "src/base/text.h"
#include "src/symbolize/rust_demangle.h"

namespace perfkit::symbolize {
namespace {

// What one name may become, at most.
constexpr uint64_t kMaxReadableBytes = 64 << 20;

// A mangled name may say "what was there before" (S_, S0_, …; T_, T0_, … of templates), so that 250 bytes can stand for
// 200 MiB. This bounds what `name` stands for: back references that each hold k others make k times as much of them,
// which is the most for the same number of references where k is 3. Of 64,464 functions of LLVM, clang, libstdc++ and
// this library's tests, three are beyond.
uint64_t MaxReadableBytes(std::string_view name) {
  uint64_t bytes = name.size();
  int references = 0;
  for (size_t at = 0; at < name.size() && bytes <= kMaxReadableBytes; ++at) {
    if (name[at] != 'S' && name[at] != 'T') continue;
    size_t end = at + 1;
    while (end < name.size() && ((name[end] >= '0' && name[end] <= '9') || (name[end] >= 'A' && name[end] <= 'Z')))
      ++end;
    if (end < name.size() && name[end] == '_' && ++references % 3 == 0) bytes *= 3;
  }
  return bytes;
}

}  // namespace

std::string Demangle(std::string_view name) {
  const std::string mangled(base::Cut(name, '@').first);
  if (std::optional<std::string> rust = DemangleRust(mangled)) {
    return *std::move(rust) + std::string(name.substr(mangled.size()));
  }
  if (!mangled.starts_with("_Z") || MaxReadableBytes(mangled) > kMaxReadableBytes) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  if (status != 0 || text == nullptr) return std::string(name);
  return text.get() + std::string(name.substr(mangled.size()));
}

}  // namespace perfkit::symbolize

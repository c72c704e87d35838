// Demangles by the C++ runtime (Itanium C++ ABI, 3.4), after trying Rust's forms, because the older one is also a valid
// C++ name. The runtime has no bound for its result, so names that could become huge are left as they are.
#include "src/symbolize/demangle.h"

#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "src/base/text.h"
#include "src/symbolize/rust_demangle.h"

namespace perfkit::symbolize {
namespace {

// Maximum of MaxReadableBytes.
constexpr uint64_t kMaxReadableBytes = 64 << 20;

// Returns an upper bound for the size of the demangled name. Back references (S_, S0_, …; T_, T0_, … in templates)
// repeat earlier parts, so a name of 250 bytes can stand for 200 MiB. If each reference contains k others, each group
// of k references multiplies the size by k; for a given number of references that is largest for k = 3. A pack
// expansion (Dp; sp in expressions) repeats its pattern for each element of a pack, of which there are fewer than bytes
// in the name; expansions can be nested. Of 152,220 names in libraries of Debian 12, 264 exceed the maximum.
uint64_t MaxReadableBytes(std::string_view name) {
  // One letter can stand for 20 characters: "y" is "unsigned long long, ".
  uint64_t bytes = 20 * name.size();
  int references = 0;
  for (size_t at = 0; at < name.size() && bytes <= kMaxReadableBytes; ++at) {
    if (const std::string_view two = name.substr(at, 2); two == "Dp" || two == "sp") bytes *= name.size();
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
  // "puts@plt": what follows '@' is no part of the mangled name, and is appended again.
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

// Asks the C++ runtime (Itanium C++ ABI, 3.4), which Rust's older mangling also follows.
#include "src/symbolize/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "src/base/text.h"

namespace perfkit::symbolize {
namespace {

constexpr size_t kLongestMangled = 4096;

}  // namespace

std::string Demangle(std::string_view name) {
  const std::string mangled(base::Cut(name, '@').first);
  if (!mangled.starts_with("_Z") || mangled.size() > kLongestMangled) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  if (status != 0 || text == nullptr) return std::string(name);
  return text.get() + std::string(name.substr(mangled.size()));
}

}  // namespace perfkit::symbolize

// Demangles Rust names, without the hashes that distinguish crates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perfkit::symbolize {

// Returns "hello::main" for "_RNvCs1234_5hello4main" (v0, RFC 2603) and for the older
// "_ZN5hello4main17h0123456789abcdefE". Omits a suffix of LLVM's (".llvm.123"). Returns nullopt if the name is neither,
// or if a v0 name exceeds 16 KiB when demangled; the older form is never longer than the name.
std::optional<std::string> DemangleRust(std::string_view name);

}  // namespace perfkit::symbolize

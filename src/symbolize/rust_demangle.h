// Rust's names as its programmers write them, without the hashes that tell crates apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perfkit::symbolize {

// "_RNvCs1234_5hello4main" -> "hello::main" (v0, RFC 2603), and the older "_ZN5hello4main17h0123456789abcdefE" ->
// "hello::main". A suffix of LLVM's (".llvm.123") is left out. Nothing when it is neither, or stands for more than 16
// KiB.
std::optional<std::string> DemangleRust(std::string_view name);

}  // namespace perfkit::symbolize

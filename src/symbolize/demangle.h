// Names as C++ programmers write them.
#pragma once

#include <string>
#include <string_view>

namespace perfkit::symbolize {

// C++ and Rust: "_ZN4game4StepEv" -> "game::Step()"; what is no mangled name stays as it is, and so do names that were
// made to stand for more than memory holds. A suffix of ours or of the linker ("@plt") is kept.
std::string Demangle(std::string_view name);

}  // namespace perfkit::symbolize

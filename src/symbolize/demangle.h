// Demangles C++ and Rust names.
#pragma once

#include <string>
#include <string_view>

namespace perfkit::symbolize {

// Returns the demangled name: "game::Step()" for "_ZN4game4StepEv". Returns `name` unchanged if it is not mangled, or
// if its demangled form could exceed a maximum size. Suffixes that begin with '@', as in "puts@plt", are kept.
std::string Demangle(std::string_view name);

}  // namespace perfkit::symbolize

// What this machine is, where that explains what is missing: a container, a virtual machine, a locked kernel.
#pragma once

#include <string>
#include <vector>

namespace perfkit::doctor {

// Sentences, most telling first; empty on plain hardware. `root` stands before every path (tests put a copy there).
std::vector<std::string> CollectHints(const std::string& root = "");

}  // namespace perfkit::doctor

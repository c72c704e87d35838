// Facts about this machine that explain what is missing: a container, a virtual machine, a locked kernel.
#pragma once

#include <string>
#include <vector>

namespace perfkit::doctor {

// Returns sentences, the most important first; empty on plain hardware. `root` is put before every path (tests use a
// copy).
std::vector<std::string> CollectHints(const std::string& root = "");

}  // namespace perfkit::doctor

// Lists of CPUs as the kernel writes them: "0-3,8", in sysfs files such as `cpus`, `cpumask` and `online`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace perfkit::base {

// More CPUs than any kernel is built for (CONFIG_NR_CPUS is at most 8192): larger numbers are no CPU list.
constexpr int kMaxCpus = 1 << 16;

// The CPUs in their written order; blanks around the text are allowed, and an empty text is no CPU. Nothing when it is
// malformed: a bad number, a range that runs backwards, a CPU above kMaxCpus, or more than that many in all.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

}  // namespace perfkit::base

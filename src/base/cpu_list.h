// Lists of CPUs as the kernel writes them: "0-3,8", in sysfs files such as `cpus`, `cpumask` and `online`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace perfkit::base {

// Upper bound of a plausible CPU list: kernels are built for at most 8192 CPUs (CONFIG_NR_CPUS).
constexpr int kMaxCpus = 1 << 16;

// Returns the CPUs in their written order. Blanks around the text are allowed; an empty text is no CPU. Returns nullopt
// if the text is malformed: a bad number, a range that runs backwards, a CPU beyond kMaxCpus, or more than kMaxCpus
// CPUs.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

}  // namespace perfkit::base

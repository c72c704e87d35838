// The highest frequency of samples, in made-up files of /proc. The remedy is applied by tests/open/settings_test.cc.
#include "src/sys/max_sample_rate.h"

#include <catch2/catch.hpp>

#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

TEST_CASE("the highest frequency is read, and what raising it takes is said", "[max_sample_rate]") {
  testing::TempFolder proc;
  CHECK(MaxSampleRate(proc.path()) == std::nullopt);
  const std::string alone = RaiseMaxSampleRate(proc.path());
  proc.Write("/sys/kernel/perf_event_max_sample_rate", "4711\n");
  CHECK(MaxSampleRate(proc.path()) == 4711);
  CHECK(MaxSampleRate().has_value());
  for (const auto& [percent, is_refused] : {std::pair{"0\n", true}, {"100\n", true}, {"25\n", false}}) {
    proc.Write("/sys/kernel/perf_cpu_time_max_percent", percent);
    const std::string remedy = RaiseMaxSampleRate(proc.path());
    CHECK(remedy.starts_with(alone));
    CHECK((remedy.find("kernel.perf_cpu_time_max_percent=") != std::string::npos) == is_refused);
  }
}

}  // namespace
}  // namespace perfkit::sys

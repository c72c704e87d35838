// Remedies that are settings of the whole machine, applied: on the test machine (tests/machine), which runs this alone.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/record.h"
#include "src/event/attr.h"
#include "src/open/live_ring.h"
#include "src/open/open_event.h"
#include "src/symbolize/kernel_names.h"
#include "src/sys/files.h"
#include "src/sys/perf_error.h"
#include "tests/support/as_user.h"
#include "tests/support/skip.h"

namespace perfkit::open {
namespace {

using testing::AsOrdinaryUser;
using Prepare = void (*)(OpenRequest& request);

// Changes settings, and sets them back. Each is a file of /proc/sys/kernel.
class Settings {
 public:
  Settings() = default;
  ~Settings() {
    for (; !before_.empty(); before_.pop_back()) Write(before_.back().first, before_.back().second);
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  bool Set(const std::string& name, int64_t value) {
    before_.emplace_back(name, Get(name));
    return Write(name, absl::StrFormat("%d", value));
  }
  // Applies each "kernel.NAME=VALUE" of a remedy. Returns false if there is none, or one is refused.
  bool Apply(std::string_view remedy) {
    constexpr std::string_view kKernel = "kernel.", kName = "abcdefghijklmnopqrstuvwxyz_";
    bool any = false;
    for (size_t at = remedy.find(kKernel); at != std::string_view::npos; at = remedy.find(kKernel, at)) {
      at += kKernel.size();
      const size_t end = remedy.find_first_not_of(kName, at);
      if (end == std::string_view::npos || remedy[end] != '=') continue;
      const std::string value(remedy.substr(end + 1, remedy.find_first_not_of("-0123456789", end + 1) - end - 1));
      if (!Set(std::string(remedy.substr(at, end - at)), std::strtoll(value.c_str(), nullptr, 10))) return false;
      any = true;
    }
    return any;
  }
  static std::string Get(const std::string& name) { return sys::ReadFile(PathOf(name), 64).value_or(""); }

 private:
  static std::string PathOf(const std::string& name) { return "/proc/sys/kernel/" + name; }
  static bool Write(const std::string& name, const std::string& value) {
    const int fd = ::open(PathOf(name).c_str(), O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
    if (!written) printf("kernel.%s=%s: %s\n", name.c_str(), value.c_str(), strerror(errno));
    if (fd >= 0) close(fd);
    return written;
  }

  std::vector<std::pair<std::string, std::string>> before_;  // In the order of the changes.
};

bool MachineIsOurs() { return getenv("PERFKIT_OWN_MACHINE") != nullptr && geteuid() == 0; }
constexpr char kNotOurs[] = "settings are for the whole machine, which others use";

struct Level {
  const char* event;
  int64_t paranoid;  // The highest level that permits it.
  Prepare prepare;
};

void SampleWith(OpenRequest& request, uint64_t fields) {
  request.attr.sample_period_or_freq = 1'000'000;
  request.attr.sample_type = fields;
}

const Level kLevels[] = {
    {"dummy:u", 2, [](OpenRequest&) {}},
    {"context-switches", 1, [](OpenRequest&) {}},
    {"task-clock:k", 1, [](OpenRequest&) {}},
    {"page-faults:uk", 1, [](OpenRequest&) {}},
    {"page-faults:u", 1, [](OpenRequest& request) { SampleWith(request, kSamplePhysAddr); }},
    {"cpu-clock:u", 0, [](OpenRequest& request) { request.pid = -1, request.cpu = 0; }},
    {"sched:sched_switch:u", -1, [](OpenRequest& request) { SampleWith(request, kSampleRaw); }},
};

absl::Status OpenAt(const Level& asked, const EventConfig& event) {
  OpenRequest request = RequestFor(event, 0);
  request.may_restrict_to_user = false;
  request.asked = asked.event;
  asked.prepare(request);
  return OpenEvent(request, sys::ReadRights()).status();
}

// The law: the level that the remedy names permits it, and the one above does not.
TEST_CASE("the level of perf_event_paranoid that an error names permits what was asked", "[settings]") {
  if (!MachineIsOurs()) SKIP_TEST(kNotOurs);
  int met = 0;
  for (const Level& asked : kLevels) {
    const absl::StatusOr<EventConfig> event = ParseEvent(asked.event);
    if (!event.ok()) continue;  // Without tracefs.
    Settings settings;
    REQUIRE(settings.Set("perf_event_paranoid", asked.paranoid + 1));
    CAPTURE(asked.event, asked.paranoid);
    // Only kernels with a patch of Debian's, Ubuntu's or Android's have a level 3.
    if (asked.paranoid == 2 && AsOrdinaryUser([&] { return OpenAt(asked, *event).ok(); })) continue;
    ++met;
    for (const int64_t level : {asked.paranoid + 1, int64_t{2}}) {
      REQUIRE(settings.Set("perf_event_paranoid", std::max(level, asked.paranoid + 1)));
      CHECK(AsOrdinaryUser([&] {
        const absl::Status status = OpenAt(asked, *event);
        const std::string remedy = sys::RemedyOf(status);
        const std::string wanted = absl::StrFormat("kernel.perf_event_paranoid=%d,", asked.paranoid);
        const bool told = absl::IsPermissionDenied(status) && remedy.find(wanted) != std::string::npos;
        if (!told) printf("%s\n", status.ToString().c_str());
        return told;
      }));
    }
    REQUIRE(settings.Apply(absl::StrFormat("sysctl kernel.perf_event_paranoid=%d, or", asked.paranoid)));
    CHECK(AsOrdinaryUser([&] {
      const absl::Status status = OpenAt(asked, *event);
      if (!status.ok()) printf("in vain: %s\n", status.ToString().c_str());
      return status.ok();
    }));
  }
  CHECK(met >= 5);
}

// Opens what takes one more than a setting permits. `remedy` becomes that of its error.
bool IsRefused(std::string_view event, Prepare prepare, std::string& remedy) {
  const EventConfig config = ParseEvent(event).value();
  OpenRequest request = RequestFor(config, 0);
  request.asked = std::string(event);
  prepare(request);
  const absl::Status status = OpenEvent(request, sys::ReadRights()).status();
  remedy = sys::RemedyOf(status);
  return !status.ok();
}

int64_t g_one_more = 0;

TEST_CASE("raising the highest frequency permits one that was refused, once the kernel lets it be raised",
          "[settings]") {
  if (!MachineIsOurs()) SKIP_TEST(kNotOurs);
  const auto faster = [](OpenRequest& request) {
    request.attr.freq = 1;
    request.attr.sample_period_or_freq = static_cast<uint64_t>(g_one_more);
  };
  Settings settings;
  REQUIRE(settings.Set("perf_cpu_time_max_percent", 25));
  g_one_more = std::strtoll(Settings::Get("perf_event_max_sample_rate").c_str(), nullptr, 10) + 1;
  std::string remedy;
  REQUIRE(IsRefused("cpu-clock:u", faster, remedy));
  CHECK(remedy.ends_with("or raise kernel.perf_event_max_sample_rate (sysctl, as root)."));
  for (const int64_t percent : {0, 100}) {  // At these values the kernel refuses the remedy alone.
    REQUIRE(settings.Set("perf_cpu_time_max_percent", percent));
    CHECK_FALSE(settings.Set("perf_event_max_sample_rate", g_one_more));
    REQUIRE(IsRefused("cpu-clock:u", faster, remedy));
    CHECK(settings.Apply(remedy));
    REQUIRE(settings.Set("perf_event_max_sample_rate", g_one_more));
    CHECK_FALSE(IsRefused("cpu-clock:u", faster, remedy));
    REQUIRE(settings.Set("perf_event_max_sample_rate", g_one_more - 1));
  }
}

TEST_CASE("raising the longest call chain permits one that was refused", "[settings]") {
  if (!MachineIsOurs()) SKIP_TEST(kNotOurs);
  const auto deeper = [](OpenRequest& request) {
    SampleWith(request, kSampleCallchain);
    request.attr.sample_max_stack = static_cast<uint16_t>(g_one_more);
  };
  Settings settings;
  g_one_more = std::strtoll(Settings::Get("perf_event_max_stack").c_str(), nullptr, 10) + 1;
  std::string remedy;
  REQUIRE(IsRefused("cpu-clock", deeper, remedy));
  CHECK(remedy.find("raise kernel.perf_event_max_stack") != std::string::npos);
  REQUIRE(settings.Set("perf_event_max_stack", g_one_more));
  CHECK_FALSE(IsRefused("cpu-clock", deeper, remedy));
}

TEST_CASE("raising the memory that a user may lock permits a ring that was refused", "[settings]") {
  if (!MachineIsOurs()) SKIP_TEST(kNotOurs);
  const auto map = [] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_MEMLOCK, &none);
    const EventConfig config = ParseEvent("dummy:u").value();
    OpenRequest request = RequestFor(config, 0);
    request.asked = "a ring";
    return LiveRing::Open(request, 256, sys::ReadRights()).status();
  };
  Settings settings;
  REQUIRE(settings.Set("perf_event_mlock_kb", 4));
  CHECK(AsOrdinaryUser([&] {
    const absl::Status status = map();
    return absl::IsResourceExhausted(status) &&
           sys::RemedyOf(status).find("raise kernel.perf_event_mlock_kb") != std::string::npos;
  }));
  REQUIRE(settings.Set("perf_event_mlock_kb", 8192));
  CHECK(AsOrdinaryUser([&] { return map().ok(); }));
}

// Those that hide /proc/kallsyms. Tested here because the test machine runs no tests of symbols.
TEST_CASE("the settings that an error about names of the kernel names show them", "[settings]") {
  if (!MachineIsOurs()) SKIP_TEST(kNotOurs);
  for (const int64_t restricted : {0, 1, 2}) {
    CAPTURE(restricted);
    Settings settings;
    REQUIRE(settings.Set("perf_event_paranoid", 2));
    REQUIRE(settings.Set("kptr_restrict", restricted));
    const bool for_root = restricted == 2;
    const std::string remedy = restricted == 0   ? "sysctl kernel.perf_event_paranoid=1"
                               : restricted == 1 ? "sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
                                                 : "sysctl kernel.kptr_restrict=1; then run";
    const auto is_told = [&] {
      symbolize::KernelNames names;
      return sys::RemedyOf(names.Load("/proc")).find(remedy) != std::string::npos;
    };
    CHECK(AsOrdinaryUser(is_told));
    CHECK(is_told() == for_root);
    REQUIRE(settings.Apply(remedy));
    const auto shows = [] {
      symbolize::KernelNames names;
      const absl::Status status = names.Load("/proc");
      if (!status.ok()) printf("in vain: %s\n", status.ToString().c_str());
      return status.ok();
    };
    CHECK((for_root ? shows() : AsOrdinaryUser(shows)));
  }
}

}  // namespace
}  // namespace perfkit::open

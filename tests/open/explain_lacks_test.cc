// What an older kernel or a PMU lacks: such kernels are made up. Each refuses one property of an attr, and accepts all
// else.
#include <errno.h>

#include <catch2/catch.hpp>

#include "perfkit/record.h"
#include "src/open/explain.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::open {
namespace {

using Code = absl::StatusCode;
using Attr = sys::PerfEventAttr;

struct Lack {
  const char* name;
  void (*ask)(Attr& attr);
  bool (*refuses)(const Attr& attr);
  int error;
  Code code;
  const char* cause;
  const char* remedy;
  void (*apply)(Attr& attr);  // nullptr: the remedy is not a change of the request.
};

void SampleBranches(Attr& attr) {
  attr.sample_period_or_freq = 1'000'000;
  attr.sample_type = kSampleIp | kSampleBranchStack;
  attr.branch_sample_type = sys::kBranchAny;
}

constexpr Lack kLacks[] = {
    {"precise samples", [](Attr& attr) { attr.sample_period_or_freq = 1'000'000, attr.precise_ip = 2; },
     [](const Attr& attr) { return attr.precise_ip > 1; }, EOPNOTSUPP, Code::kUnavailable,
     "cannot sample that precisely", "leave out the modifier ':p'", [](Attr& attr) { attr.precise_ip = 0; }},
    {"branch stacks", SampleBranches, [](const Attr& attr) { return attr.branch_sample_type != 0; }, EOPNOTSUPP,
     Code::kUnavailable, "no such branch stacks", "leave out branch stacks",
     [](Attr& attr) { attr.branch_sample_type = 0, attr.sample_type = kSampleIp; }},
    {"branches in the kernel", SampleBranches,
     [](const Attr& attr) { return attr.branch_sample_type != 0 && (attr.branch_sample_type & sys::kBranchUser) == 0; },
     EACCES, Code::kPermissionDenied, "may not see branches in the kernel", "or grant CAP_PERFMON", nullptr},
    {"inherited groups", [](Attr& attr) { attr.inherit = 1; }, [](const Attr& attr) { return attr.inherit != 0; },
     EINVAL, Code::kUnavailable, "cannot combine it with threads that start later", "Target::WithoutInherit",
     [](Attr& attr) { attr.inherit = 0; }},
    {"inherited by threads alone", [](Attr& attr) { attr.inherit = attr.inherit_thread = 1; },
     [](const Attr& attr) { return attr.inherit_thread != 0; }, E2BIG, Code::kUnavailable,
     "cannot combine it with threads that start later", "Target::WithoutInherit",
     [](Attr& attr) { attr.inherit = attr.inherit_thread = 0; }},
    {"lost samples", [](Attr& attr) { attr.read_format |= sys::kFormatLost; },
     [](const Attr& attr) { return (attr.read_format & sys::kFormatLost) != 0; }, EINVAL, Code::kUnavailable,
     "does not count what an event loses", "use a newer kernel", nullptr},
    {"a field of samples",
     [](Attr& attr) { attr.sample_period_or_freq = 1, attr.sample_type = kSampleIp | kSampleCgroup; },
     [](const Attr& attr) { return (attr.sample_type & kSampleCgroup) != 0; }, EINVAL, Code::kUnavailable,
     "cannot have the field 'cgroup'", "leave the field out", [](Attr& attr) { attr.sample_type = kSampleIp; }},
};

const Lack* g_lack = nullptr;  // The made-up kernel's.

TEST_CASE("what a kernel or a PMU lacks is named, and the remedy works", "[explain]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const Attr* attr, pid_t, int, int, unsigned long) {
    if (!g_lack->refuses(*attr)) return sys::kLinux.open("/dev/null", 0);
    errno = g_lack->error;
    return -1;
  };
  for (const Lack& lack : kLacks) {
    g_lack = &lack;
    OpenRequest request;
    request.attr.type = sys::kTypeRaw;
    request.attr.config = 0x1c2;
    request.attr.exclude_kernel = request.attr.exclude_hv = 1;
    request.asked = lack.name;
    const sys::Rights user{.paranoid = 2, .euid = 1000};
    CHECK(OpenEvent(request, user).ok());
    lack.ask(request.attr);
    const absl::Status status = OpenEvent(request, user).status();
    INFO(status);
    CHECK(status.code() == lack.code);
    CHECK(sys::CauseOf(status).find(lack.cause) != std::string::npos);
    CHECK(sys::RemedyOf(status).find(lack.remedy) != std::string::npos);
    if (lack.apply == nullptr) continue;
    lack.apply(request.attr);
    CHECK(OpenEvent(request, user).ok());
  }
  CHECK(fake.Leaks() == "");
}

bool g_has_cycles = false;  // The made-up kernel has a PMU with one event.

// The kernel checks rights first.
TEST_CASE("an event that is not there is not said to be denied", "[explain]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const Attr* attr, pid_t, int, int, unsigned long) {
    const bool is_cycles = attr->type == sys::kTypeHardware && attr->config == 0;
    const bool is_there = attr->type == sys::kTypeSoftware || (g_has_cycles && is_cycles);
    if (attr->exclude_kernel != 0 && is_there) return sys::kLinux.open("/dev/null", 0);
    errno = attr->exclude_kernel == 0 ? EACCES : ENOENT;
    return -1;
  };
  const sys::Rights user{.paranoid = 2, .euid = 1000};
  for (const bool has_cycles : {false, true}) {
    g_has_cycles = has_cycles;
    for (const uint32_t type : {sys::kTypeHardware, sys::kTypeHwCache, sys::kTypeRaw}) {
      OpenRequest request;
      request.attr.type = type;
      request.attr.config = 1;
      request.attr.exclude_user = 1;
      request.may_restrict_to_user = false;
      request.asked = "event ':k'";
      const absl::Status status = OpenEvent(request, user).status();
      INFO(status);
      CHECK(status.code() == Code::kUnavailable);
      CHECK(sys::CauseOf(status) ==
            (has_cycles ? "the PMU of this machine has no such event" : "no PMU of this machine has that event"));
      CHECK(sys::RemedyOf(status).find("grant") == std::string::npos);
    }
  }
  CHECK(fake.Leaks() == "");
}

}  // namespace
}  // namespace perfkit::open

// The retry ladder against a scripted kernel: each rung is taken where it keeps the meaning, and nowhere else.
#include "src/open/open_event.h"

#include <errno.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "src/sys/kernel.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::open {
namespace {

using testing::FakeKernel;

// What perf_event_open was asked, in order, and what it answers: 0 opens /dev/null. Switched off are the experiments of
// src/open/explain.h, which all end as the last answer did.
struct Script {
  std::vector<int> answers;
  std::vector<sys::PerfEventAttr> asked;
};
Script g_script;

void Install(FakeKernel& fake, std::vector<int> answers) {
  g_script = {std::move(answers), {}};
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t, int, int, unsigned long flags) {
    REQUIRE((flags & sys::kOpenFdCloexec) != 0);
    const size_t n = g_script.asked.size();
    if (attr->disabled != 0) {
      errno = g_script.answers.back();
      return -1;
    }
    g_script.asked.push_back(*attr);
    REQUIRE(n < g_script.answers.size());
    errno = g_script.answers[n];
    return errno == 0 ? sys::kLinux.open("/dev/null", 0) : -1;
  };
}

constexpr sys::Rights kOrdinary{.paranoid = 2, .euid = 1000, .perfmon = false};

TEST_CASE("what opens at once is opened as it was asked", "[open_event]") {
  FakeKernel fake;
  Install(fake, {0});
  OpenRequest request;
  request.attr.config = 7;
  const auto opened = OpenEvent(request, kOrdinary);
  REQUIRE(opened.ok());
  CHECK_FALSE(opened->user_only);
  CHECK(g_script.asked[0].config == 7);
  CHECK(g_script.asked[0].exclude_kernel == 0);
  CHECK(g_script.asked[0].size == 64);
}

TEST_CASE("a refused kernel part is left out, and that is said", "[open_event]") {
  for (const int error : {EACCES, EPERM}) {
    FakeKernel fake;
    Install(fake, {error, 0});
    const auto opened = OpenEvent({}, kOrdinary);
    REQUIRE(opened.ok());
    CHECK(opened->user_only);
    CHECK(g_script.asked[1].exclude_kernel == 1);
    CHECK(g_script.asked[1].exclude_hv == 1);
  }
}

TEST_CASE("a kernel part that the user wrote is never left out", "[open_event]") {
  FakeKernel fake;
  Install(fake, {EACCES});
  OpenRequest request;
  request.may_restrict_to_user = false;
  request.asked = "event 'cycles:k' on this thread";
  const auto opened = OpenEvent(request, kOrdinary);
  REQUIRE(absl::IsPermissionDenied(opened.status()));
  const std::string text(opened.status().message());
  CHECK(text.find("'cycles:k'") != std::string::npos);
  CHECK(text.find("perf_event_paranoid is 2") != std::string::npos);
  CHECK(text.find("uid 1000") != std::string::npos);
  CHECK(text.find("Remedy") != std::string::npos);
}

TEST_CASE("optional bits of config1 are added, and left out where they are refused", "[open_event]") {
  OpenRequest request;
  request.attr.config1 = 1;
  request.optional_config1 = 2;
  FakeKernel fake;
  Install(fake, {0});
  REQUIRE(OpenEvent(request, kOrdinary).ok());
  CHECK(g_script.asked[0].config1 == 3);
  for (const int error : {EINVAL, EOPNOTSUPP}) {
    Install(fake, {error, 0});
    REQUIRE(OpenEvent(request, kOrdinary).ok());
    REQUIRE(g_script.asked.size() == 2);
    CHECK(g_script.asked[1].config1 == 1);
    Install(fake, {error, error});
    CHECK_FALSE(OpenEvent(request, kOrdinary).ok());
  }
}

TEST_CASE("a kernel that takes no PMU's number in a generic event is asked for that PMU's own", "[open_event]") {
  OpenRequest request;
  request.attr.config = uint64_t{7} << 32 | 1;
  request.attr.config1 = 1;
  request.optional_config1 = 2;
  request.own_type = 7;
  request.own_config = 8;
  FakeKernel fake;
  for (const int error : {EINVAL, ENOENT}) {
    const bool with_bits_first = error == EINVAL;
    Install(fake, with_bits_first ? std::vector<int>{error, error, 0} : std::vector<int>{error, 0});
    REQUIRE(OpenEvent(request, kOrdinary).ok());
    CHECK(g_script.asked[0].config == (uint64_t{7} << 32 | 1));
    CHECK(g_script.asked.back().type == 7);
    CHECK(g_script.asked.back().config == 8);
    CHECK(g_script.asked.back().config1 == 3);
  }
  Install(fake, {ENOENT, EINVAL, EINVAL});
  CHECK(absl::IsInvalidArgument(OpenEvent(request, kOrdinary).status()));
  request.own_type = 0;
  Install(fake, {ENOENT});
  CHECK_FALSE(OpenEvent(request, kOrdinary).ok());
}

TEST_CASE("rights that are missing even for user space end in an error, not in a loop", "[open_event]") {
  FakeKernel fake;
  Install(fake, {EACCES, EACCES});
  CHECK(absl::IsPermissionDenied(OpenEvent({}, kOrdinary).status()));
  CHECK(g_script.asked.size() == 2);
}

TEST_CASE("interruptions are retried, a bounded number of times", "[open_event]") {
  FakeKernel fake;
  Install(fake, {EINTR, EINTR, 0});
  CHECK(OpenEvent({}, kOrdinary).ok());
  Install(fake, std::vector<int>(16, EINTR));
  CHECK_FALSE(OpenEvent({}, kOrdinary).ok());
  CHECK(g_script.asked.size() == 16);
}

TEST_CASE("inherit_thread falls away on old kernels, and says that children are in", "[open_event]") {
  FakeKernel fake;
  Install(fake, {EINVAL, 0});
  OpenRequest request;
  request.attr.inherit = request.attr.inherit_thread = 1;
  const auto opened = OpenEvent(request, kOrdinary);
  REQUIRE(opened.ok());
  CHECK(opened->with_children);
  CHECK(g_script.asked[1].inherit == 1);
  CHECK(g_script.asked[1].inherit_thread == 0);
}

TEST_CASE("a kernel that knows no build-ids of mappings is asked without them", "[open_event]") {
  FakeKernel fake;
  Install(fake, {EINVAL, 0});
  OpenRequest request;
  request.attr.mmap2 = request.attr.build_id = 1;
  REQUIRE(OpenEvent(request, kOrdinary).ok());
  REQUIRE(g_script.asked.size() == 2);
  CHECK(g_script.asked[0].build_id == 1);
  CHECK(g_script.asked[1].build_id == 0);
  CHECK(g_script.asked[1].mmap2 == 1);
}

TEST_CASE("as precise as can be goes down step by step; a precision that was named does not", "[open_event]") {
  FakeKernel fake;
  Install(fake, {EOPNOTSUPP, EOPNOTSUPP, 0});
  OpenRequest request;
  request.attr.precise_ip = 3;
  request.lower_precise = true;
  REQUIRE(OpenEvent(request, kOrdinary).ok());
  CHECK(g_script.asked[2].precise_ip == 1);
  Install(fake, {EOPNOTSUPP});
  request.lower_precise = false;
  CHECK(absl::IsUnavailable(OpenEvent(request, kOrdinary).status()));
}

TEST_CASE("each error keeps its kind", "[open_event]") {
  FakeKernel fake;
  const std::pair<int, absl::StatusCode> kKinds[] = {
      {ENOENT, absl::StatusCode::kUnavailable},       {ESRCH, absl::StatusCode::kNotFound},
      {EMFILE, absl::StatusCode::kResourceExhausted}, {ENOSPC, absl::StatusCode::kResourceExhausted},
      {EINVAL, absl::StatusCode::kInvalidArgument},   {EBUSY, absl::StatusCode::kResourceExhausted},
  };
  for (const auto& [error, code] : kKinds) {
    Install(fake, {error});
    CHECK(OpenEvent({}, kOrdinary).status().code() == code);
  }
  CHECK(fake.Leaks() == "");
}

}  // namespace
}  // namespace perfkit::open

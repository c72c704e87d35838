// Hints from files, on trees made for the purpose; and where a function lies in its file.
#include "src/doctor/hints.h"

#include <stdlib.h>
#include <string.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "src/doctor/own_code.h"
#include "src/doctor/workload.h"
#include "tests/support/temp_folder.h"

namespace perfkit::doctor {
namespace {

bool Says(const std::vector<std::string>& hints, const std::string& what) {
  for (const std::string& hint : hints) {
    if (hint.find(what) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("plain hardware gives no hints", "[hints]") {
  const testing::TempFolder root;
  CHECK(CollectHints(root.path()).empty());
  root.Write("/proc/self/status", "Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n");
  root.Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: hypervisor\nflags\t\t: fpu vme\n");
  root.Write("/proc/version", "Linux version 6.1.0\n");
  root.Write("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  root.Write("/proc/sys/kernel/nmi_watchdog", "0\n");
  CHECK(CollectHints(root.path()).empty());
}

TEST_CASE("each sign is told", "[hints]") {
  const testing::TempFolder root;
  root.Write("/proc/self/status", "Name:\tx\nSeccomp:\t2\n");
  CHECK(Says(CollectHints(root.path()), "seccomp"));
  root.Write("/.dockerenv", "");
  CHECK(Says(CollectHints(root.path()), "Docker"));
  root.Write("/run/.containerenv", "");
  CHECK(Says(CollectHints(root.path()), "Podman"));
  root.Write("/proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n");
  CHECK(Says(CollectHints(root.path()), "virtual machine"));
  root.Write("/proc/version", "Linux version 5.15.90.1-microsoft-standard-WSL2\n");
  CHECK(Says(CollectHints(root.path()), "WSL"));
  root.Write("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  CHECK(Says(CollectHints(root.path()), "locked down"));
  root.Write("/proc/sys/kernel/nmi_watchdog", "1\n");
  CHECK(Says(CollectHints(root.path()), "watchdog"));
  CHECK(CollectHints(root.path()).size() == 7);
}

TEST_CASE("a function is found in the file that it was loaded from", "[own_code]") {
  const auto location = FileLocationOf(Workload::ProbedFunction());
  REQUIRE(location);
  // The file's bytes there are the bytes in memory.
  FILE* const file = fopen(location->path.c_str(), "rb");
  REQUIRE(file != nullptr);
  unsigned char bytes[2];
  REQUIRE(fseek(file, static_cast<long>(location->offset), SEEK_SET) == 0);
  REQUIRE(fread(bytes, 1, sizeof(bytes), file) == sizeof(bytes));
  fclose(file);
  CHECK(memcmp(bytes, Workload::ProbedFunction(), sizeof(bytes)) == 0);
  CHECK_FALSE(FileLocationOf(bytes));
  CHECK_FALSE(FileLocationOf(nullptr));
}

}  // namespace
}  // namespace perfkit::doctor

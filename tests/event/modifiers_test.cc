// Modifiers: the flags they set, the errors they give, and perf itself as an oracle for both.
#include "src/event/modifiers.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "perfkit/event.h"
#include "src/event/attr.h"
#include "tests/support/event_roots.h"
#include "tests/support/skip.h"

namespace perfkit::event {
namespace {

EventConfig With(std::string_view letters) {
  Modifiers modifiers;
  REQUIRE(AddModifiers(letters, letters, modifiers).ok());
  EventConfig config;
  modifiers.ApplyTo(config);
  return config;
}

std::string RefusalOfLetters(std::string_view letters) {
  Modifiers modifiers;
  return std::string(AddModifiers(letters, letters, modifiers).message());
}

// user, kernel, hypervisor, host, guest: 'x' where the event excludes it.
std::string Excluded(const EventConfig& config) {
  std::string text;
  for (const bool excluded :
       {config.exclude_user, config.exclude_kernel, config.exclude_hv, config.exclude_host, config.exclude_guest}) {
    text += excluded ? 'x' : '-';
  }
  return text;
}

TEST_CASE("privilege letters exclude the levels that are not named", "[modifiers]") {
  CHECK(Excluded(EventConfig()) == "-----");
  CHECK(Excluded(With("u")) == "-xx-x");
  CHECK(Excluded(With("k")) == "x-x--");
  CHECK(Excluded(With("h")) == "xx---");
  CHECK(Excluded(With("uk")) == "--x-x");
  CHECK(Excluded(With("ukh")) == "----x");
  CHECK(With("ukh").privilege_given);
  CHECK_FALSE(With("pH").privilege_given);
}

TEST_CASE("G and H exclude the side that is not named", "[modifiers]") {
  CHECK(Excluded(With("G")) == "---x-");
  CHECK(Excluded(With("H")) == "----x");
  CHECK(Excluded(With("GH")) == "-----");
  CHECK(Excluded(With("uG")) == "-xxx-");
  CHECK(Excluded(With("uGH")) == "-xx--");
}

TEST_CASE("precise events leave guests out, as the kernel demands", "[modifiers]") {
  CHECK((With("p").precise == 1 && With("pp").precise == 2 && With("ppp").precise == 3));
  CHECK(Excluded(With("p")) == "----x");
  CHECK(Excluded(With("pG")) == "---x-");
  CHECK((With("P").precise_max && With("P").precise == 0));
  CHECK(With("pup").precise == 2);
}

TEST_CASE("the other letters are flags", "[modifiers]") {
  CHECK(With("I").exclude_idle);
  CHECK(With("D").pinned);
  CHECK(With("S").sample_read);
  CHECK(With("W").weak_group);
  CHECK(With("e").exclusive);
  const EventConfig none;
  CHECK_FALSE((none.exclude_idle || none.pinned || none.sample_read || none.weak_group || none.exclusive));
}

TEST_CASE("bad modifiers are pointed at", "[modifiers]") {
  const std::string all = "; modifiers are u k h G H I p pp ppp P D S W e";
  CHECK(RefusalOfLetters("uq") == "event 'uq', character 2: 'q' is no modifier" + all);
  CHECK(RefusalOfLetters("") == "event '': nothing after the ':'" + all);
  CHECK(RefusalOfLetters("uku") == "event 'uku', character 3: modifier 'u' is written twice");
  CHECK(RefusalOfLetters("pppp") == "event 'pppp', character 4: more than three 'p': ppp is the most precise");
  CHECK(RefusalOfLetters("pP") == "event 'pP', character 2: 'P' beside 'p': P already asks for the most precise");
  CHECK(RefusalOfLetters("Pp") == "event 'Pp', character 2: 'p' beside 'P': P already asks for the most precise");
  CHECK(RefusalOfLetters("ub") ==
        "event 'ub', character 2: modifier 'b' counts with BPF programs, which perfkit does not do");
  CHECK(RefusalOfLetters("u ") == "event 'u ', character 2: ' ' is no modifier" + all);
}

TEST_CASE("what looks like modifiers is told from names", "[modifiers]") {
  CHECK(LooksLikeModifiers("ukhGHIpPDSWe"));
  CHECK_FALSE(LooksLikeModifiers(""));
  CHECK_FALSE(LooksLikeModifiers("sched_switch"));
}

// What `perf stat -vv` prints of the attr it opens: "  exclude_kernel                   1".
std::string PerfShows(const std::string& event) {
  std::string output;
  FILE* const pipe = ::popen(("perf stat -vv -e '" + event + "' true 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  ::pclose(pipe);
  return output;
}

bool Shows(const std::string& output, const std::string& field) {
  return output.find("  " + field + "  ") != std::string::npos;
}

TEST_CASE("perf opens the same attr", "[modifiers][oracle]") {
  if (PerfShows("dummy").find("perf_event_attr") == std::string::npos)
    SKIP_TEST("perf is not installed, or may not open events");
  if (::geteuid() != 0) SKIP_TEST("perf restricts events for ordinary users, and shows the restricted attr");
  for (const char* letters :
       {"u", "k", "uk", "h", "G", "H", "GH", "uG", "p", "ppp", "pG", "kp", "I", "D", "e", "uIDe"}) {
    INFO(letters);
    const std::string output = PerfShows(std::string("cycles:") + letters);
    const absl::StatusOr<EventConfig> config =
        ParseEvent(std::string("cycles:") + letters, testing::GoldenRoots("kvm_no_pmu"));
    REQUIRE(config.ok());
    const sys::PerfEventAttr attr = ToAttr(*config, config->parts[0]);
    CHECK(attr.exclude_user == Shows(output, "exclude_user"));
    CHECK(attr.exclude_kernel == Shows(output, "exclude_kernel"));
    CHECK(attr.exclude_hv == Shows(output, "exclude_hv"));
    CHECK(attr.exclude_host == Shows(output, "exclude_host"));
    CHECK(attr.exclude_guest == Shows(output, "exclude_guest"));
    CHECK(attr.exclude_idle == Shows(output, "exclude_idle"));
    CHECK(attr.pinned == Shows(output, "pinned"));
    CHECK(attr.exclusive == Shows(output, "exclusive"));
    CHECK((attr.precise_ip != 0) == Shows(output, "precise_ip"));
  }
}

}  // namespace
}  // namespace perfkit::event

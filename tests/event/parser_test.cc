// The parser on one machine: each form of event, and each error's whole text.
#include <linux/hw_breakpoint.h>

#include <catch2/catch.hpp>
#include <string>

#include "perfkit/event.h"
#include "tests/support/event_roots.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

using testing::GoldenRoots;
using testing::RefusalOf;
using testing::VmRoots;

EventConfig Parse(std::string_view text) {
  absl::StatusOr<EventConfig> event = ParseEvent(text, VmRoots());
  INFO(std::string(text) << ": " << event.status().ToString());
  REQUIRE(event.ok());
  return *std::move(event);
}

std::string Refusal(std::string_view text) { return RefusalOf(text, VmRoots()); }

TEST_CASE("generic events know their unit and their side", "[parser]") {
  CHECK(Parse("task-clock").unit == "ns");
  CHECK(Parse("cs").kernel_side);
  CHECK(Parse(" page-faults\n").name == "page-faults");
  CHECK_FALSE(Parse("page-faults:u").kernel_side);
  CHECK(Parse("cycles/name=work/u").name == "work");
  CHECK(Parse("software/config=3/").kernel_side);
  CHECK(Parse("1:3:u").kernel_side);
  CHECK(Parse("1:1").unit == "ns");
}

TEST_CASE("raw events are hexadecimal", "[parser]") {
  CHECK(Parse("r01c0").parts[0].config == 0x1c0);
  CHECK(Parse("r0x1C0:k").parts[0].config == 0x1c0);
  CHECK(Parse("rffffffffffffffff").parts[0].config == ~0ull);
  CHECK(Refusal("r1ffffffffffffffff") != "parsed");
  CHECK(Refusal("r") != "parsed");
  CHECK(Refusal("r-1") != "parsed");
}

TEST_CASE("breakpoints have perf's defaults", "[parser][breakpoint]") {
  const EventConfig plain = Parse("mem:0x601040");
  CHECK(plain.breakpoint_kind == HW_BREAKPOINT_RW);
  CHECK((plain.parts[0].type == 5 && plain.parts[0].config1 == 0x601040 && plain.parts[0].config2 == 4));
  const EventConfig execute = Parse("mem:4096:x:u");
  CHECK(execute.breakpoint_kind == HW_BREAKPOINT_X);
  CHECK((execute.parts[0].config1 == 4096 && execute.parts[0].config2 == sizeof(long) && execute.exclude_kernel));
  const EventConfig narrow = Parse("mem:0x10/1:w");
  CHECK((narrow.breakpoint_kind == HW_BREAKPOINT_W && narrow.parts[0].config2 == 1));
  CHECK(Parse("mem:0x10/8:r").breakpoint_kind == HW_BREAKPOINT_R);
  CHECK(Parse("mem:0x10:u").exclude_kernel);
}

TEST_CASE("breakpoints that make no sense are refused", "[parser][breakpoint]") {
  CHECK(Refusal("mem:main") ==
        "event 'mem:main', character 5: 'main' is no address; a breakpoint is written 'mem:0x601040/8:rw'");
  CHECK(Refusal("mem:0x10/16") ==
        "event 'mem:0x10/16', character 10: '16' is no length; a breakpoint watches 1, 2, 4 or 8 bytes");
  CHECK(Refusal("mem:0x10/:w") ==
        "event 'mem:0x10/:w', character 10: '' is no length; a breakpoint watches 1, 2, 4 or 8 bytes");
  CHECK(Refusal("mem:0x10:rwr") == "event 'mem:0x10:rwr', character 12: access 'r' is written twice");
  CHECK(Refusal("mem:0x10:rx") ==
        "event 'mem:0x10:rx', character 10: 'x' stands alone: no CPU watches one place for execution and for access at "
        "once");
  CHECK(Refusal("mem:0x10:").starts_with("event 'mem:0x10:', character 10: nothing after the ':'"));
}

TEST_CASE("tracepoints are numbers from tracefs", "[parser][tracepoint]") {
  const EventConfig event = Parse("sched:sched_switch:k");
  CHECK((event.parts[0].type == 2 && event.parts[0].config == 372 && event.kernel_side && event.exclude_user));
  CHECK_FALSE(Parse("syscalls:sys_enter_openat").kernel_side);
  CHECK(Parse("raw_syscalls:sys_enter").kernel_side);
}

TEST_CASE("tracepoints that are not there are answered with near ones", "[parser][tracepoint]") {
  CHECK(Refusal("sched:sched_swich") ==
        "event 'sched:sched_swich', character 7: this kernel has no tracepoint 'sched_swich' in group 'sched'; did you "
        "mean 'sched_switch'?");
  CHECK(Refusal("shed:sched_switch") ==
        "event 'shed:sched_switch': this kernel has no event or tracepoint group called 'shed'; did you mean "
        "'sched:sched_switch'?");
  CHECK(Refusal("exceptoins:page_fault") ==
        "event 'exceptoins:page_fault': this kernel has no event or tracepoint group called 'exceptoins'; did "
        "you mean 'exceptions'?");
  CHECK(Refusal("sched:*") == "event 'sched:*': patterns stand for many events; name one ('sched:sched_switch')");
  CHECK(Refusal("sched:..") == "event 'sched:..': a tracepoint is written 'group:name'");
  CHECK(Refusal("sched_wakeup") ==
        "event 'sched_wakeup': no event or PMU is called 'sched_wakeup'; did you mean 'sched:sched_wakeup'? (perf list "
        "shows them)");
}

TEST_CASE("without tracefs a tracepoint's error says how to mount it", "[parser][tracepoint]") {
  EventRoots roots = VmRoots();
  roots.tracefs.clear();
  const testing::TempFolder proc;
  roots.proc = proc.path();
  CHECK(RefusalOf("sched:sched_switch", roots)
            .ends_with("the mounts cannot be read: cannot open " + roots.proc +
                       "/self/mounts: No such file or directory. Remedy: as root: mount "
                       "-t proc proc " +
                       roots.proc + "."));
  proc.Write("/self/mounts", "none / tmpfs rw 0 0\n");
  CHECK(RefusalOf("sched:sched_switch", roots) ==
        "event 'sched:sched_switch': no event is called 'sched'; if a tracepoint is meant: tracefs, where the kernel "
        "numbers its tracepoints, is not mounted. Remedy: as root: mount -t tracefs tracefs /sys/kernel/tracing");
  CHECK(absl::IsNotFound(ParseEvent("sched:sched_switch", roots).status()));
  CHECK(RefusalOf("cs:u", roots) == "parsed");
}

TEST_CASE("wrong names are answered with near ones", "[parser][errors]") {
  CHECK(Refusal("cylces:u") ==
        "event 'cylces:u': no event or PMU is called 'cylces'; did you mean 'cycles'? (perf list shows them)");
  CHECK(Refusal("L1-dcache-load-mises") ==
        "event 'L1-dcache-load-mises': no event or PMU is called 'L1-dcache-load-mises'; did you mean "
        "'L1-dcache-load-misses', 'L1-icache-load-misses', 'L1-dcache-loads'? (perf list shows them)");
  CHECK(
      Refusal("Context_Switches") ==
      "event 'Context_Switches': no event or PMU is called 'Context_Switches'; did you mean 'context-switches'? (perf "
      "list shows them)");
  CHECK(Refusal("zzzzzz") == "event 'zzzzzz': no event or PMU is called 'zzzzzz' (perf list shows them)");
  CHECK(Refusal("system-calls") == "event 'system-calls': only Measure counts 'system-calls' (measure.h)");
  CHECK(Refusal("msr") == "event 'msr': 'msr' is a PMU, not an event; write one of its events, as in 'msr/tsc/'");
  CHECK(Refusal("duration_time") ==
        "event 'duration_time': 'duration_time' is a clock of the perf tool, not an event; 'task-clock' counts the time on a CPU");
  CHECK(Refusal("") == "event '': no event is named here");
  CHECK(Refusal(":u") == "event ':u': no event is named here");
  CHECK(absl::IsInvalidArgument(ParseEvent("cylces", VmRoots()).status()));
}

TEST_CASE("wrong PMUs and terms are answered with near ones", "[parser][errors]") {
  const std::string folder = VmRoots().sysfs + "/bus/event_source/devices";
  CHECK(Refusal("mrs/tsc/") ==
        "event 'mrs/tsc/': this machine has no PMU called 'mrs' (" + folder + "); did you mean 'msr'?");
  CHECK(Refusal("cpu/cycles/") == "event 'cpu/cycles/': this machine has no PMU called 'cpu' (" + folder +
                                      "); it has 'breakpoint', 'msr', 'software', 'tracepoint', 'uprobe'");
  CHECK(absl::IsNotFound(ParseEvent("cpu/cycles/", VmRoots()).status()));
  CHECK(Refusal("msr/tsk/") ==
        "event 'msr/tsk/', character 5: PMU 'msr' has no event or term 'tsk'; did you mean 'tsc'?");
  CHECK(Refusal("msr/evnt=1/") ==
        "event 'msr/evnt=1/', character 5: PMU 'msr' has no term 'evnt'; did you mean 'event'?");
  CHECK(Refusal("msr/umask=1/") == "event 'msr/umask=1/', character 5: PMU 'msr' has no term 'umask'; it has 'event'");
  CHECK(Refusal("msr/event/") ==
        "event 'msr/event/', character 5: term 'event' of PMU 'msr' has 64 bits and needs a value: 'event=0x..'");
  CHECK(Refusal("../msr/tsc/").find("no PMU called '..'") != std::string::npos);
}

TEST_CASE("values that do not fit are refused", "[parser][errors]") {
  const EventRoots amd = GoldenRoots("amd_zen3");
  CHECK(RefusalOf("cpu/umask=0x100/", amd) ==
        "event 'cpu/umask=0x100/', character 5: 0x100 does not fit into term 'umask' of PMU 'cpu': it has 8 bits, at "
        "most 0xff");
  CHECK(RefusalOf("cpu/event=0x1000/", amd).find("12 bits, at most 0xfff") != std::string::npos);
  CHECK(RefusalOf("cpu/event=-1/", amd) ==
        "event 'cpu/event=-1/', character 11: '-1' of term 'event' is negative: write its bits in hexadecimal");
  CHECK(RefusalOf("cpu/event=three/", amd) ==
        "event 'cpu/event=three/', character 11: 'three' of term 'event' is no number (0x1f, 31) of 64 bits");
  CHECK(RefusalOf("cpu/config=0x10000000000000000/", amd).find("is no number") != std::string::npos);
}

TEST_CASE("terms that contradict each other are refused", "[parser][errors]") {
  const EventRoots amd = GoldenRoots("amd_zen3");
  CHECK(RefusalOf("cpu/event=1,event=2/", amd) ==
        "event 'cpu/event=1,event=2/', character 13: term 'event' is written twice");
  CHECK(
      RefusalOf("cpu/cpu-cycles,instructions/", amd) ==
      "event 'cpu/cpu-cycles,instructions/', character 16: 'cpu-cycles' and 'instructions' are two events; write two");
  for (const char* two : {"cpu/cpu-cycles,r1cd/", "cpu/r1cd,cpu-cycles/", "cpu/r1cd,r003c/"}) {
    CAPTURE(two);
    CHECK(RefusalOf(two, amd).find("are two events; write two") != std::string::npos);
  }
  CHECK(RefusalOf("cpu/r1cd/", amd) == "parsed");
  CHECK(RefusalOf("cpu/r1cd,umask=2/", amd) == "parsed");
  CHECK(RefusalOf("cpu/cycles,umask=1/", amd) ==
        "event 'cpu/cycles,umask=1/', character 5: generic event 'cycles' takes no further terms");
  CHECK(RefusalOf("cpu/cycles,name=x/", amd) == "parsed");
  CHECK(RefusalOf("cpu/event=1,,umask=1/", amd) ==
        "event 'cpu/event=1,,umask=1/', character 13: a term without a name; terms are written 'event=0x3c,umask=1'");
  CHECK(RefusalOf("cpu/event=/", amd) == "event 'cpu/event=/', character 5: term 'event=' has no value");
  CHECK(
      RefusalOf("cpu/cpu-cycles,period=1000/", amd) ==
      "event 'cpu/cpu-cycles,period=1000/', character 16: term 'period' says how samples are taken; that is an option "
      "of perfkit's sampler, not a part of the event's name");
  CHECK(RefusalOf("cycles/event=1/", amd) ==
        "event 'cycles/event=1/', character 8: a generic event takes no terms but 'name=text'");
}

TEST_CASE("punctuation in the wrong place is pointed at", "[parser][errors]") {
  CHECK(Refusal("msr/tsc") ==
        "event 'msr/tsc', character 4: a '/' without the one that ends the terms: 'pmu/term,term=value/'");
  CHECK(Refusal("cs,cycles") ==
        "event 'cs,cycles', character 3: ',' separates events, and one event was asked for; ParseEventList takes several");
  CHECK(Refusal("{cs}") == "event '{cs}': braces make a group, and one event was asked for; ParseEventList takes groups");
  CHECK(Refusal("msr/tsc/x") ==
        "event 'msr/tsc/x', character 9: 'x' is no modifier; modifiers are u k h G H I p pp ppp "
        "P D S W e");
  CHECK(Refusal(std::string_view("cs\0u", 4)) == "event 'cs\\x00u', character 3: a NUL byte");
  CHECK(Refusal(std::string(5000, 'a')).ends_with("longer than any event (5000 characters)"));
  CHECK(Refusal("\x1b[31m").find('\x1b') == std::string::npos);
}

TEST_CASE("PMUs whose events are more than numbers have a form of their own", "[parser][errors]") {
  CHECK(Refusal("uprobe/config=1/") == "event 'uprobe/config=1/': write a uprobe as 'uprobe:/lib/x.so:malloc'");
  CHECK(Refusal("breakpoint/config=1/") == "event 'breakpoint/config=1/': write a breakpoint as 'mem:0x601040/8:rw'");
  CHECK(RefusalOf("kprobe/retprobe/", GoldenRoots("amd_zen3")) ==
        "event 'kprobe/retprobe/': perfkit sets no probes in the kernel; see its tracepoints");
}

TEST_CASE("constants resolve as their names do", "[resolve]") {
  const EventRoots intel = GoldenRoots("intel_alderlake");
  const absl::StatusOr<EventConfig> by_constant = ResolveEvent(event::kCycles, intel);
  const absl::StatusOr<EventConfig> by_name = ResolveEvent("cycles", intel);
  REQUIRE(by_constant.ok());
  REQUIRE(by_name.ok());
  CHECK(by_constant->name == "cycles");
  REQUIRE(by_constant->parts.size() == 2);
  CHECK(by_constant->parts[1].config == by_name->parts[1].config);
  CHECK(ResolveEvent(event::kContextSwitches, intel)->kernel_side);
  CHECK(ResolveEvent(event::kTaskClock, intel)->unit == "ns");
}

TEST_CASE("a null pointer is no event", "[resolve]") {
  const char* const none = nullptr;
  const absl::Status status = ResolveEvent(EventSpec(none), VmRoots()).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status == ResolveEvent("", VmRoots()).status());
}

TEST_CASE("a constant of one's own is taken as it stands", "[resolve]") {
  const absl::StatusOr<EventConfig> own = ResolveEvent(EventType{4, 0x1c0, 7, 8, ""}, VmRoots());
  REQUIRE(own.ok());
  CHECK(own->name == "4:0x1c0");
  CHECK((own->parts[0].config1 == 7 && own->parts[0].config2 == 8 && !own->kernel_side));
  CHECK(ResolveEvent(EventType{2, 372, 0, 0, "switches"}, VmRoots())->kernel_side);
  CHECK(ResolveEvent(EventType{5, 0, 0, 0, "mine"}, VmRoots()).status().message() ==
        "event 'mine': a breakpoint has an address and a kind, which a constant cannot say; write it as text: "
        "'mem:0x601040/8:rw'");
}

}  // namespace
}  // namespace perfkit

// Golden bytes of perf_event_attr: what each kind of event looks like to the kernel.
//
// The bytes are written out as words of 64 bits (little endian), taken from what `perf stat -vv` shows for the same
// events, so that a slip in PerfEventAttr's layout or in ToAttr is seen here and not in a counter.
#include "src/event/attr.h"

#include <linux/perf_event.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

namespace perfkit::event {
namespace {

using Words = std::array<uint64_t, 17>;

Words WordsOf(const sys::PerfEventAttr& attr) {
  Words words;
  static_assert(sizeof(words) == sizeof(attr));
  std::memcpy(words.data(), &attr, sizeof(attr));
  return words;
}

constexpr uint64_t TypeAndSize(uint32_t type, uint32_t size) { return type | uint64_t{size} << 32; }

EventConfig OnePart(uint32_t type, uint64_t config) {
  EventConfig event;
  event.parts.push_back({.type = type, .config = config, .pmu = {}, .only_cpus = {}});
  return event;
}

TEST_CASE("a plain event is type, size and config", "[attr]") {
  const EventConfig event = OnePart(1, 3);
  const Words expected = {TypeAndSize(1, 64), 3};
  CHECK(WordsOf(ToAttr(event, event.parts[0])) == expected);
}

TEST_CASE("modifiers are single bits of the flags word", "[attr]") {
  struct Case {
    bool EventConfig::*flag;
    uint64_t bit;
  };
  const Case cases[] = {
      {&EventConfig::pinned, 1 << 2},        {&EventConfig::exclusive, 1 << 3},
      {&EventConfig::exclude_user, 1 << 4},  {&EventConfig::exclude_kernel, 1 << 5},
      {&EventConfig::exclude_hv, 1 << 6},    {&EventConfig::exclude_idle, 1 << 7},
      {&EventConfig::exclude_host, 1 << 19}, {&EventConfig::exclude_guest, 1 << 20},
      {&EventConfig::weak_group, 0},         {&EventConfig::sample_read, 0},
      {&EventConfig::privilege_given, 0},    {&EventConfig::kernel_side, 0},
  };
  for (const Case& one : cases) {
    EventConfig event = OnePart(0, 0);
    event.*one.flag = true;
    const Words expected = {TypeAndSize(0, 64), 0, 0, 0, 0, one.bit};
    CHECK(WordsOf(ToAttr(event, event.parts[0])) == expected);
  }
}

TEST_CASE("precision is two bits, and P asks for the most", "[attr]") {
  for (const unsigned precise : {0u, 1u, 2u, 3u}) {
    EventConfig event = OnePart(0, 0);
    event.precise = static_cast<uint8_t>(precise);
    CHECK(WordsOf(ToAttr(event, event.parts[0]))[5] == uint64_t{precise} << 15);
  }
  EventConfig event = OnePart(0, 0);
  event.precise_max = true;
  CHECK(WordsOf(ToAttr(event, event.parts[0]))[5] == uint64_t{3} << 15);
}

TEST_CASE("the further configs go to the end, and the size grows with them", "[attr]") {
  EventConfig event = OnePart(10, 0x1cd);
  event.parts[0].config1 = 0x11;
  Words expected = {TypeAndSize(10, 64), 0x1cd, 0, 0, 0, 0, 0, 0x11};
  CHECK(WordsOf(ToAttr(event, event.parts[0])) == expected);
  event.parts[0].config2 = 0x22;
  expected = {TypeAndSize(10, 72), 0x1cd, 0, 0, 0, 0, 0, 0x11, 0x22};
  CHECK(WordsOf(ToAttr(event, event.parts[0])) == expected);
  event.parts[0].config3 = 0x33;
  expected = {TypeAndSize(10, 136), 0x1cd, 0, 0, 0, 0, 0, 0x11, 0x22, 0, 0, 0, 0, 0, 0, 0, 0x33};
  CHECK(WordsOf(ToAttr(event, event.parts[0])) == expected);
}

TEST_CASE("a breakpoint is its kind, address and length", "[attr]") {
  EventConfig event = OnePart(PERF_TYPE_BREAKPOINT, 0);
  event.breakpoint_kind = sys::kBreakRead | sys::kBreakWrite;
  event.parts[0].config1 = 0x601040;
  event.parts[0].config2 = 8;
  const Words expected = {TypeAndSize(5, 72), 0, 0, 0, 0, 0, uint64_t{3} << 32, 0x601040, 8};
  CHECK(WordsOf(ToAttr(event, event.parts[0])) == expected);
}

TEST_CASE("a uprobe points at its path", "[attr]") {
  EventConfig event = OnePart(8, 1);
  event.probe_path = "/lib/x.so";
  event.parts[0].config2 = 0x1234;
  const sys::PerfEventAttr attr = ToAttr(event, event.parts[0]);
  const Words expected = {
      TypeAndSize(8, 72), 1, 0, 0, 0, 0, 0, reinterpret_cast<uintptr_t>(event.probe_path.c_str()), 0x1234};
  CHECK(WordsOf(attr) == expected);
}

TEST_CASE("the kernel's own struct reads the same fields", "[attr]") {
  EventConfig event = OnePart(4, 0x1c0);
  event.exclude_kernel = event.exclude_hv = event.exclude_guest = event.pinned = true;
  event.precise = 2;
  const sys::PerfEventAttr attr = ToAttr(event, event.parts[0]);
  perf_event_attr theirs{};
  std::memcpy(&theirs, &attr, std::min(sizeof(theirs), sizeof(attr)));
  CHECK(theirs.type == PERF_TYPE_RAW);
  CHECK(theirs.size == PERF_ATTR_SIZE_VER0);
  CHECK(theirs.config == 0x1c0);
  CHECK((theirs.exclude_kernel && theirs.exclude_hv && theirs.exclude_guest && theirs.pinned));
  CHECK_FALSE((theirs.exclude_user || theirs.exclude_host || theirs.exclude_idle || theirs.exclusive));
  CHECK(theirs.precise_ip == 2);
}

}  // namespace
}  // namespace perfkit::event

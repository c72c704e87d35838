// Measures what a region of code costs, reliably enough for assertions in tests: repeated and calibrated.
//
//   using namespace perfkit::event;
//   auto m = perfkit::Measure({kInstructions, kAllocations}, [&] { return table.find(42); });
//   fputs(m.ToString().c_str(), stdout);
//
// The class of an event decides how it is measured and what a test may assert:
//
//   exact       page faults, allocations, calls, system calls and their bytes,       all of 5 repetitions
//               stepped instructions                                            (the stepper: its only one)
//   near-exact  instructions and branches of a PMU                                   the minimum of 11 repetitions
//   noisy       cycles, misses, switches, major faults                               the median of 31, and its interval
//   time        clocks                                                               as noisy; use Compare instead of a
//                                                                                    fixed limit
//
// Each event is measured by itself, on the calling thread: nothing is multiplexed, and no counter disturbs another.
// Perf's events count user space only, except the clocks, and those that the kernel raises (system calls, context
// switches). Where perf is forbidden, page faults are those of getrusage, in the kernel as well (Cost::read_path). The
// region runs once to warm up. Then it runs for each event: once to warm up the event (not with kStepper), and once for
// each repetition. If the thread is switched, there are up to four times as many repetitions, and a backend that fails
// may have run it some more times. So the region must do the same each time. It should return what it computes, or the
// compiler may drop it. An empty region is measured the same way and subtracted. Repetitions in which the thread was
// switched are dropped, and counted.
//
// Several threads may measure at once. The stepper handles SIGTRAP while it runs a region. With PERFKIT_ENABLE=0 the
// region does not run, and each cost is unmeasurable.
//
// An exception that the region throws ends the measurement and goes on to the caller. The region must not end its
// thread (pthread_exit, a cancellation), nor be left by longjmp. Perf's events count what signal handlers do meanwhile;
// the stepper does not.
// No test framework is needed here; testing.h has the matchers.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__cpp_exceptions)
#include <exception>
#endif

#include "perfkit/event_type.h"
#include "perfkit/measured_events.h"

namespace PERFKIT_NAMESPACE {

class FrameCounter;

// The calls of one function, as an event. Made by Calls().
struct CallsEvent : EventType {};

// Returns an event for each execution of the first instruction of `function`; inlined copies don't count. `name` must
// outlive the event.
template <class R, class... Args>
CallsEvent Calls(R (*function)(Args...), std::string_view name = "calls") {
  return {{kMeasuredType, 3, reinterpret_cast<uintptr_t>(function), 0, name}};
}

enum class EventClass : uint8_t { kExact, kNearExact, kNoisy, kTime };
std::string_view EventClassName(EventClass event_class);

// Returns the class of an event. A Cost may have a better one: stepped instructions are exact.
constexpr EventClass ClassOf(const EventType& event) {
  if (event.type == kMeasuredType) return EventClass::kExact;
  if (event.type == 0) {
    const bool steady = event == event::kInstructions || event == event::kBranches;
    return steady ? EventClass::kNearExact : EventClass::kNoisy;
  }
  if (event == event::kTaskClock || event == event::kCpuClock) return EventClass::kTime;
  // Major faults depend on what the page cache holds.
  const bool counted = event == event::kPageFaults || event == event::kMinorFaults ||
                       event == event::kAlignmentFaults || event == event::kEmulationFaults || event == event::kDummy;
  return counted ? EventClass::kExact : EventClass::kNoisy;
}

// What a cost is measured by. The event decides the order in which backends are tried; Cost::read_path names the first
// that works.
enum class MeasureBackend : uint8_t {
  // perf: the PMU, software events, tracepoints, breakpoints, uprobes. For kReadBytes and kWrittenBytes, which perf
  // does not have, ReadPath::kThreadIo.
  kCounter,
  kHooks,  // The wrapped malloc of perfkit::testing_alloc, if it is linked.
  // The trap flag of x86-64: exact, one repetition. Instructions, calls, allocations and system calls only.
  kStepper,
};

struct MeasureOptions {
  // Number of repetitions; 0 means that of the class (exact 5, near-exact 11, noisy and time 31). The stepper always
  // takes one.
  uint32_t repetitions = 0;
  // Maximum steps of one run under the stepper. Beyond it, or beyond step_cpu_ns, the region runs on without stepping,
  // and the event is unmeasurable. A step takes 2 to 17 us, by the machine.
  uint64_t step_budget = 200'000;
  // Maximum CPU time of one run under the stepper, in nanoseconds; 0 means no limit.
  uint64_t step_cpu_ns = 10'000'000'000;
  // Allows this backend only, e.g. for the same counts on machines with and without a PMU; nullopt allows all.
  std::optional<MeasureBackend> only{};
  // A FrameCounter whose zones the region contains, or nullptr. It is disabled during the measurement, then enabled for
  // two more runs, each with a Mark() at its end: one to warm up, one for Measurement::by_zone. The numbers there are of
  // the FrameCounter's events, not of the measured ones. Requires the thread that constructed it.
  FrameCounter* zones = nullptr;
};

// An interval that includes both ends.
struct Interval {
  double low = 0, high = 0;
};

// What a region costs in one event: either measured, or `unmeasurable` says why not.
struct Cost {
  EventType event;
  EventClass event_class = EventClass::kExact;
  std::string read_path;     // "stepper", "perf, ring", ...
  std::string unmeasurable;  // Why it was not measured; "" if it was.
  bool user_only = false;    // Counted in user space only.
  // The cost in each repetition that was kept, less `empty`, in the event's unit. In the order in which they ran; if
  // `switched`, those with a switch come first.
  std::vector<int64_t> values;
  int64_t empty = 0;      // Cost of the empty region, in the same unit.
  uint32_t dropped = 0;   // Repetitions left out because the thread was switched.
  bool switched = false;  // Too few were without a switch, so all were kept: the region waits, or CPUs are busy.

  bool measured() const { return unmeasurable.empty(); }
  // Returns true if the class is exact or near-exact, so that the cost is one number.
  bool steady() const { return event_class == EventClass::kExact || event_class == EventClass::kNearExact; }
  // Returns the minimum for exact and near-exact events, else the median; 0 if not measured.
  int64_t value() const;
  // Returns the interval of the true cost: all values of an exact event, the minimum of a near-exact one, for others an
  // interval around the median, by order statistics. Its confidence is at least 95 % if there are 6 values or more.
  Interval interval() const;
  // Returns "instructions 1,234 (exact, stepper)" or "instructions unmeasurable: …".
  std::string ToString() const;
};

// The costs of one region, in the order of the events.
struct Measurement {
  std::vector<Cost> costs;
  std::string by_zone;  // A line for each zone; "" without MeasureOptions::zones.

  // Returns the cost of an event, which may be unmeasurable; nullptr if the event is not in `costs`. Valid as long as
  // this object.
  const Cost* Find(const EventType& event) const;
  std::string ToString() const;
};

// Two regions that were measured in turns: values[i] of both belong together.
struct Comparison {
  Measurement subject, reference;
  // Returns the interval of subject / reference for an event: from both intervals if the event is steady(), otherwise
  // around the median ratio of the pairs. Returns nullopt if one is not measured, or if the reference may cost 0.
  std::optional<Interval> Ratio(const EventType& event) const;
  std::string ToString() const;
};

// One region at several sizes that were measured in turns.
struct ScalingResult {
  std::vector<uint64_t> sizes;
  std::vector<Measurement> at;  // By size.
  std::string ToString() const;
};

#if PERFKIT_ENABLE
namespace detail {

// A region without its type. `call` runs it once, and `empty` runs an empty function through the same wrapper, compiled
// by the same compiler with the same options. Neither throws: `threw` is set if the region did.
struct Region {
  void (*call)(void* self);
  void* self;
  void (*empty)(void* self);
  void* empty_self;
  const bool* threw;
};

// Keeps the compiler from dropping the computation of `value`.
template <class T>
inline void Keep(T&& value) {
  asm volatile("" ::"m"(value) : "memory");
}

// A callable as a plain function, which catches the exceptions of the callable.
template <class Fn>
struct Caller {
  static void Body(Caller& self) {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn&>>) {
      self.fn();
    } else {
      Keep(self.fn());
    }
  }

  static void Call(void* self) {
#if defined(__cpp_exceptions)
    try {
      Body(*static_cast<Caller*>(self));
    } catch (...) {
      static_cast<Caller*>(self)->thrown = std::current_exception();
      static_cast<Caller*>(self)->threw = true;
    }
#else
    Body(*static_cast<Caller*>(self));
#endif
  }

  Fn& fn;
  bool threw = false;
#if defined(__cpp_exceptions)
  std::exception_ptr thrown{};
#endif
};

// A function that costs its call and its return only.
template <class R>
[[gnu::noinline]] R ReturnAtOnce() noexcept {
  if constexpr (std::is_void_v<R>) {
    asm volatile("");
  } else {
    R value;
    asm volatile("" : "=r"(value));  // The value that the register happens to hold.
    return value;
  }
}

// Replaces `Fn` to measure the wrapper's own cost: an empty callable of the same kind. For a class such as a lambda it
// is an empty function object, which the compiler can inline likewise.
template <class Fn>
struct EmptyTwin {
  struct Object {
    void operator()() const {}
  };
  using Type = const Object;
  static constexpr Object value{};
};

// For a function it is an empty function, which is called likewise. If the result does not fit a register, the
// function's cost includes storing it.
template <class Fn, class R = std::invoke_result_t<Fn&>>
using TwinResult = std::conditional_t<std::is_integral_v<R> || std::is_pointer_v<R> || std::is_enum_v<R>, R, void>;

template <class Fn>
requires std::is_function_v<Fn>
struct EmptyTwin<Fn> {
  using Type = TwinResult<Fn>();
  static constexpr Type& value = ReturnAtOnce<TwinResult<Fn>>;
};

template <class Fn>
requires(std::is_pointer_v<Fn>&& std::is_function_v<std::remove_pointer_t<Fn>>) struct EmptyTwin<Fn> {
  using Type = TwinResult<Fn> (*const)();
  static constexpr Type value = ReturnAtOnce<TwinResult<Fn>>;
};

// Owns the objects that a Region points to. Neither copyable nor movable.
template <class Fn>
class RegionOf {
 public:
  explicit RegionOf(Fn& fn) : body_{fn} {}
  RegionOf(const RegionOf&) = delete;
  RegionOf& operator=(const RegionOf&) = delete;

  Region region() { return {&Caller<Fn>::Call, &body_, &Caller<Empty>::Call, &empty_, &body_.threw}; }

  void Rethrow() {
#if defined(__cpp_exceptions)
    if (body_.threw) std::rethrow_exception(body_.thrown);
#endif
  }

 private:
  using Empty = typename EmptyTwin<Fn>::Type;
  Caller<Fn> body_;
  Caller<Empty> empty_{EmptyTwin<Fn>::value};
};

// Return text such as "-1,234", for messages. FormatAmount adds the unit of the clocks: "1,234 ns".
std::string FormatSigned(int64_t value);
std::string FormatAmount(const EventType& event, int64_t value);

// Returns one Measurement for each region. Stops early if a region throws.
std::vector<Measurement> MeasureRegions(std::span<const EventType> events, std::span<const Region> regions,
                                        const MeasureOptions& options);

}  // namespace detail

// Measures what `fn()` costs on the calling thread. Never fails: an event that can't be measured has a reason
// (Cost::unmeasurable).
template <class Fn>
Measurement Measure(std::initializer_list<EventType> events, Fn&& fn, const MeasureOptions& options = {}) {
  detail::RegionOf<std::remove_reference_t<Fn>> subject(fn);
  const detail::Region region = subject.region();
  std::vector<Measurement> measured = detail::MeasureRegions(events, {&region, 1}, options);
  subject.Rethrow();
  return std::move(measured[0]);
}

// Measures what `fn()` and `reference()` cost, in turns.
template <class Fn, class Reference>
Comparison Compare(std::initializer_list<EventType> events, Fn&& fn, Reference&& reference,
                   const MeasureOptions& options = {}) {
  detail::RegionOf<std::remove_reference_t<Fn>> first(fn);
  detail::RegionOf<std::remove_reference_t<Reference>> second(reference);
  const std::array regions = {first.region(), second.region()};
  std::vector<Measurement> measured = detail::MeasureRegions(events, regions, options);
  first.Rethrow();
  second.Rethrow();
  return {std::move(measured[0]), std::move(measured[1])};
}

// Measures what `fn(n)` costs for each n of `sizes`, in turns.
template <class Fn>
ScalingResult Scaling(std::initializer_list<EventType> events, Fn&& fn, std::initializer_list<uint64_t> sizes,
                      const MeasureOptions& options = {}) {
  const auto at = [&fn](uint64_t n) { return [&fn, n] { return fn(n); }; };
  using Sized = decltype(at(0));
  std::vector<Sized> bodies;
  for (const uint64_t n : sizes) bodies.push_back(at(n));
  std::vector<std::unique_ptr<detail::RegionOf<Sized>>> owners;
  std::vector<detail::Region> regions;
  for (Sized& body : bodies) {
    owners.push_back(std::make_unique<detail::RegionOf<Sized>>(body));
    regions.push_back(owners.back()->region());
  }
  ScalingResult result{sizes, detail::MeasureRegions(events, regions, options)};
  for (auto& owner : owners) owner->Rethrow();
  return result;
}
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/measure.h"
#endif

// What a region costs, taken so that a test may assert on it: repeated, calibrated, with its worth and its reason.
//
//   using namespace perfkit::event;
//   auto m = perfkit::Measure({kInstructions, kAllocations}, [&] { return table.find(42); });
//   fputs(m.ToString().c_str(), stdout);
//
// The class of an event decides how it is taken and what may be asserted on it:
//
//   exact       faults, allocations, calls, system calls, stepped instructions    each of 5 repetitions holds
//   near-exact  instructions and branches of a PMU                                the least of 11 repetitions
//   noisy       cycles, misses, switches                                          the median of 31, with its interval
//   time        clocks                                                            the same; compare, don't limit
//
// Each event is measured by itself, on the calling thread: nothing is multiplexed, and no counter disturbs another.
// The region runs once to warm up, then once for each repetition of each event: it must do the same each time, and
// should return what it computes, so that the compiler keeps it. An empty region is measured the same way and
// subtracted. Repetitions in which the thread was switched are dropped, and counted.
//
// An exception that the region throws ends the measurement and goes on to the caller.
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

namespace perfkit {

class FrameCounter;

// EventType::type of events that perf does not know. A CounterSet refuses them.
inline constexpr uint32_t kMeasuredType = 0xffff'0001;

namespace event {

// Calls of malloc, calloc, realloc, memalign, aligned_alloc and posix_memalign; operator new ends there too.
inline constexpr EventType kAllocations{kMeasuredType, 1, 0, 0, "allocations"};
// System calls that the thread makes. What the vDSO answers (clock_gettime, mostly) is none.
inline constexpr EventType kSyscalls{kMeasuredType, 2, 0, 0, "system-calls"};

}  // namespace event

// Calls of one function: an event made at run time.
struct CallsEvent : EventType {};

// Each execution of the first instruction of `function`; inlined copies don't count. `name` must outlive the event.
template <class R, class... Args>
CallsEvent Calls(R (*function)(Args...), std::string_view name = "calls") {
  return {{kMeasuredType, 3, reinterpret_cast<uintptr_t>(function), 0, name}};
}

enum class EventClass : uint8_t { kExact, kNearExact, kNoisy, kTime };
std::string_view EventClassName(EventClass event_class);

// The class that an event has in itself. A measured Cost may do better: stepped instructions are exact.
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

// What a number is taken with. Backends are tried in an order that the event decides; the first that works is named.
enum class MeasureBackend : uint8_t {
  kCounter,  // perf: the PMU, the kernel's software events, a tracepoint, a breakpoint, uprobes
  kHooks,    // the wrapped malloc of perfkit::testing_alloc, where it is linked
  kStepper,  // the trap flag: exact anywhere, one repetition
};

struct MeasureOptions {
  // 0: as the class asks (exact 5, near-exact 11, noisy and time 31). The stepper always takes one.
  uint32_t repetitions = 0;
  // Maximum steps of one run under the stepper. A step takes 2 to 17 us, by the machine.
  uint64_t step_budget = 200'000;
  // Maximum CPU time of one run under the stepper, in nanoseconds; 0 means no limit.
  uint64_t step_cpu_ns = 10'000'000'000;
  // Only this one: numbers that are the same on machines with and without a PMU, say.
  std::optional<MeasureBackend> only{};
  // Whose zones the region has, if any (frame_counter.h): off while it is measured, then on for two more runs that tell
  // what each zone costs. On the thread that made it.
  FrameCounter* zones = nullptr;
};

// From one number to another, both included.
struct Interval {
  double low = 0, high = 0;
};

// What one event of a region costs. Either measured, or with a reason why not: never a silent 0.
struct Cost {
  EventType event;
  EventClass event_class = EventClass::kExact;
  std::string read_path;        // "stepper", "perf, ring", ...
  std::string unmeasurable;     // why there is no number; "": there is
  std::vector<int64_t> values;  // one a repetition, in order, the empty region subtracted
  int64_t empty = 0;            // what the empty region costs
  uint32_t dropped = 0;         // repetitions left out, because the thread was switched
  bool switched = false;        // every repetition was switched, so they were kept: the region itself waits

  bool measured() const { return unmeasurable.empty(); }
  // Exact or near-exact: a number, not a distribution.
  bool steady() const { return event_class == EventClass::kExact || event_class == EventClass::kNearExact; }
  // The one number: the least of exact and near-exact events, else the median. 0 when not measured.
  int64_t value() const;
  // What the region's true cost lies in: all values of an exact event, the least of a near-exact one, an interval
  // around the median (95 % or more, by order statistics) of others.
  Interval interval() const;
  // "instructions 1,234 (exact, stepper)", or "instructions unmeasurable: …".
  std::string ToString() const;
};

// The costs of one region, in the order in which the events were given.
struct Measurement {
  std::vector<Cost> costs;
  std::string by_zone;  // a line for each zone; "" without MeasureOptions::zones

  // Null: the event was not asked for.
  const Cost* Find(const EventType& event) const;
  std::string ToString() const;
};

// Two regions, measured in turns: repetition i of one belongs to repetition i of the other.
struct Comparison {
  Measurement subject, reference;
  // Subject over reference, by event: of the values, or of the median of the pairs. Nothing when not measured, or when
  // the reference costs nothing.
  std::optional<Interval> Ratio(const EventType& event) const;
  std::string ToString() const;
};

// One region at several sizes, measured in turns.
struct ScalingResult {
  std::vector<uint64_t> sizes;
  std::vector<Measurement> at;  // by size
  std::string ToString() const;
};

namespace detail {

// A region without its type: how to run it once, and how to run nothing through the same wrapper, compiled by the same
// compiler with the same options. Neither throws.
struct Region {
  void (*call)(void* self);
  void* self;
  void (*empty)(void* self);
  void* empty_self;
  const bool* threw;
};

// Keeps the compiler from dropping what computed `value`.
template <class T>
inline void Keep(T&& value) {
  asm volatile("" ::"m"(value) : "memory");
}

// A callable as a plain function, which keeps what it throws.
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

// A function that costs its call and its return, and nothing more.
template <class R>
[[gnu::noinline]] R ReturnAtOnce() noexcept {
  if constexpr (std::is_void_v<R>) {
    asm volatile("");
  } else {
    R value;
    asm volatile("" : "=r"(value));  // whatever the register holds
    return value;
  }
}

// What is called in the place of `Fn` to learn what the wrapper costs: something empty of the same kind. A lambda's is
// inlined as the lambda is.
template <class Fn>
struct EmptyTwin {
  struct Object {
    void operator()() const {}
  };
  using Type = const Object;
  static constexpr Object value{};
};

// A function's is a function that is called in the same way. If the result takes more than a register, storing it stays
// in the function's cost.
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

// Owns what a Region points to. Stays where it is.
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

// "-1,234", for messages.
std::string FormatSigned(int64_t value);

// One Measurement a region. Stops early when a region throws.
std::vector<Measurement> MeasureRegions(std::span<const EventType> events, std::span<const Region> regions,
                                        const MeasureOptions& options);

}  // namespace detail

// What `fn()` costs on this thread.
template <class Fn>
Measurement Measure(std::initializer_list<EventType> events, Fn&& fn, const MeasureOptions& options = {}) {
  detail::RegionOf<std::remove_reference_t<Fn>> subject(fn);
  const detail::Region region = subject.region();
  std::vector<Measurement> measured = detail::MeasureRegions(events, {&region, 1}, options);
  subject.Rethrow();
  return std::move(measured[0]);
}

// What `fn()` costs beside `reference()`.
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

// What `fn(n)` costs for each n of `sizes`.
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

}  // namespace perfkit

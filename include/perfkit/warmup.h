// Keeps the kernel's side of events warm, so that sets open in microseconds.
//
// For the first perf event of a process, and for the first of each kind, the kernel patches code and allocates. A set
// of four takes about 33 us to open on an idle machine, and sometimes milliseconds; it takes about 7 us while an event
// of each kind is open anywhere in the process. An engine that attaches counters in the middle of a frame should pay
// that cost earlier.
//
//   perfkit::Warmup warm({"task-clock", "page-faults", "context-switches"});   // at start-up
//   ...                                                                        // sets open and close cheaply
//   warm.Cooldown();                                                           // or its destructor
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

#include "perfkit/event_type.h"

namespace PERFKIT_NAMESPACE {

#if PERFKIT_ENABLE
// Holds each of `events` open on the constructing thread, disabled. Until Cooldown, each context switch of that thread
// takes 17 to 21 % longer (four events). Never fails: ignores events that can't be opened. In a forked child it holds
// none. Movable, not copyable: a moved-from one holds none. Not thread-safe: any thread may call it, one at a time.
class Warmup {
 public:
  explicit Warmup(std::span<const EventSpec> events);
  explicit Warmup(std::initializer_list<EventSpec> events)
      : Warmup(std::span<const EventSpec>(events.begin(), events.size())) {}
  Warmup(Warmup&&) noexcept;
  Warmup& operator=(Warmup&&) noexcept;
  ~Warmup();

  // Closes the events. May be called more than once.
  void Cooldown() noexcept;

  // Returns the number of perf events that are held open: one for each part of an event.
  size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/warmup.h"
#endif

// Keeps the kernel's side of events warm, so that sets open in microseconds while it lives.
//
// The first perf event of a process, and the first of a kind, make the kernel patch code and allocate: a set of four
// takes about 33 us to open on an idle machine, now and then milliseconds, and about 7 us while an event of each kind
// is open anywhere in the process. An engine that attaches counters in the middle of a frame wants that paid before.
//
//   perfkit::Warmup warm({"task-clock", "page-faults", "context-switches"});   // at start-up
//   ...                                                                        // sets open and close cheaply
//   warm.Cooldown();                                                           // or when it dies
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

#include "perfkit/event_type.h"

namespace perfkit {

// Holds one disabled event of each kind on the thread that constructs it. The price, until Cooldown: each context
// switch of that thread takes 17 to 21 % longer (four events). Never fails: what cannot be opened stays cold.
class Warmup {
 public:
  explicit Warmup(std::span<const EventSpec> events);
  explicit Warmup(std::initializer_list<EventSpec> events)
      : Warmup(std::span<const EventSpec>(events.begin(), events.size())) {}
  Warmup(Warmup&&) noexcept;
  Warmup& operator=(Warmup&&) noexcept;
  ~Warmup();

  // Closes them. Any thread; more than once does no harm.
  void Cooldown() noexcept;

  // How many events are held open.
  size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit

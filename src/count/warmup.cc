// Keeps disabled events open. Opening the machine's first event of a task, or its first software event with a config
// (PERF_COUNT_SW_*), and closing the last one, patches the kernel's code (static keys: account_event and
// perf_swevent_init, kernel/events/core.c). In between, opening others is cheap. A disabled event counts nothing, but
// costs its thread time at each switch until Cooldown closes it.
#include "perfkit/warmup.h"

#include <utility>
#include <vector>

#include "perfkit/event.h"
#include "src/event/attr.h"
#include "src/open/open_event.h"
#include "src/sys/fork_registry.h"

namespace perfkit {

struct Warmup::Impl {
  ~Impl() {
    const sys::ForkBlocker fork_blocker;
    events.clear();
  }

  std::vector<open::OpenedEvent> events;
  // In a forked child the descriptors are closed: they would keep the parent's events alive.
  sys::ForkListener fork_listener{[](void* self) { static_cast<Impl*>(self)->events.clear(); }, this};
};

namespace {

open::OpenRequest DisabledRequest(const EventConfig& event, const EventConfig::Part& part) {
  open::OpenRequest request;
  request.attr = event::ToAttr(event, part);
  request.attr.disabled = 1;
  request.asked = event.name;
  request.lower_precise = event.precise_max;
  return request;
}

}  // namespace

Warmup::Warmup(std::span<const EventSpec> events) : impl_(std::make_unique<Impl>()) {
  const sys::LazyRights rights;
  const sys::ForkBlocker fork_blocker;
  for (const EventSpec& spec : events) {
    const absl::StatusOr<EventConfig> event = ResolveEvent(spec);
    if (!event.ok()) continue;
    for (const EventConfig::Part& part : event->parts) {
      absl::StatusOr<open::OpenedEvent> opened = open::OpenEvent(DisabledRequest(*event, part), rights);
      if (opened.ok()) impl_->events.push_back(*std::move(opened));
    }
  }
}

Warmup::Warmup(Warmup&&) noexcept = default;
Warmup& Warmup::operator=(Warmup&&) noexcept = default;
Warmup::~Warmup() = default;

void Warmup::Cooldown() noexcept { impl_.reset(); }

size_t Warmup::size() const { return impl_ == nullptr ? 0 : impl_->events.size(); }

}  // namespace perfkit

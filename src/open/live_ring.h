// An event with its mapped ring: the descriptor, the user page and the data after it, owned together.
//
// The mapping is read-only, so the kernel overwrites and never waits for a reader. The ring can then serve as an
// endless counter (its head), which keeps the latest records and needs no upkeep.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/detail/user_page.h"
#include "src/open/open_event.h"
#include "src/sys/mapping.h"

namespace perfkit::open {

class LiveRing {
 public:
  // Opens `request` and maps its user page and 2^n `data_pages`, or the user page alone (0), read-only. If records have
  // the event's count, it is enabled only then: what it counts before would be in no record. If the kernel refuses the
  // group of `request`, the event is alone: it counts the same, but each switch of its thread takes longer. The
  // group's members must be of one PMU, or it has to be settled (PerfGroup::Settle). Errors: those of OpenEvent;
  // ResourceExhausted if this user may not lock more memory.
  static absl::StatusOr<LiveRing> Open(const OpenRequest& request, uint32_t data_pages, const sys::LazyRights& rights);

  // Maps an event that is open already; takes ownership of its descriptor.
  static absl::StatusOr<LiveRing> Map(OpenedEvent event, uint32_t data_pages, const std::string& asked,
                                      const sys::LazyRights& rights);

  // Enables or disables the event, and so the group that it leads: kIocEnable, kIocDisable. `asked` is for the error.
  absl::Status Switch(unsigned long ioctl_request, std::string_view asked, const sys::LazyRights& rights) const;

  int fd() const { return event_.fd.get(); }
  bool user_only() const { return event_.user_only; }
  const UserPage* page() const { return reinterpret_cast<const UserPage*>(mapping_.data()); }
  // Returns the data area; its size is a power of two.
  std::span<const std::byte> data() const { return mapping_.bytes().subspan(page_size_); }
  uint64_t head() const { return LoadShared(page()->data_head); }

  // In a forked child: closes the descriptor, and forgets the mapping, which was not inherited.
  void OnForkedChild() {
    event_.fd.Reset();
    mapping_.Forget();
  }

 private:
  LiveRing(OpenedEvent event, sys::Mapping mapping, size_t page_size)
      : event_(std::move(event)), mapping_(std::move(mapping)), page_size_(page_size) {}

  OpenedEvent event_;  // Declared first, so that the ring is unmapped before the event is closed: a mapped event lives
                       // on until it is unmapped.
  sys::Mapping mapping_;
  size_t page_size_;
};

}  // namespace perfkit::open

// An event with its mapped ring: the descriptor, the user page and the data after it, owned together.
//
// Read-only mappings overwrite: the kernel never waits for a reader, so the ring can serve as an endless counter (its
// head) with the latest records after it, and needs no upkeep at all.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "perfkit/detail/user_page.h"
#include "src/open/open_event.h"
#include "src/sys/mapping.h"

namespace perfkit::open {

class LiveRing {
 public:
  // Opens `request` and maps its user page and 2^n `data_pages`, or the page alone (0), read-only.
  // Errors: those of OpenEvent; ResourceExhausted when this user may lock no more memory.
  static absl::StatusOr<LiveRing> Open(const OpenRequest& request, uint32_t data_pages, const sys::Rights& rights);

  // Maps an event that is open already; takes the descriptor.
  static absl::StatusOr<LiveRing> Map(OpenedEvent event, uint32_t data_pages, const std::string& asked,
                                      const sys::Rights& rights);

  int fd() const { return event_.fd.get(); }
  bool user_only() const { return event_.user_only; }
  const UserPage* page() const { return reinterpret_cast<const UserPage*>(mapping_.data()); }
  // The data area; its size is a power of two.
  std::span<const std::byte> data() const { return mapping_.bytes().subspan(page_size_); }
  uint64_t head() const { return LoadShared(page()->data_head); }

  // In the child of a fork: closes the descriptor, forgets the mapping that was not inherited.
  void OnForkedChild() {
    event_.fd.Reset();
    mapping_.Forget();
  }

 private:
  LiveRing(OpenedEvent event, sys::Mapping mapping, size_t page_size)
      : event_(std::move(event)), mapping_(std::move(mapping)), page_size_(page_size) {}

  OpenedEvent event_;  // declared first: a mapped event lives on until it is unmapped, so unmap first
  sys::Mapping mapping_;
  size_t page_size_;
};

}  // namespace perfkit::open

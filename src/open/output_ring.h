// A ring into which several events write, and whose records are read. (A LiveRing belongs to one event, and often only
// its head is read, as a count.)
//
//   event ──┐
//   event ──┼─ SET_OUTPUT ──> ring owner: a dummy event, which alone is mapped ──> RingReader
//   event ──┘
//
// The ring owner counts nothing. It has the ring's size and watermark, and may be disabled, or enabled if it writes
// side-band records itself. Pausing it pauses all events of the ring. Because no other event is mapped, events may be
// opened, closed, inherited, and moved to another ring.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "perfkit/ring_reader.h"
#include "src/open/open_event.h"
#include "src/sys/mapping.h"

namespace perfkit::open {

// Not thread-safe.
class OutputRing {
 public:
  // Opens `owner` (`mode` sets write_backward) and maps `bytes`, a power of two of at least a page. Errors: those of
  // OpenEvent; ResourceExhausted if this user may not lock more memory.
  static absl::StatusOr<OutputRing> Open(const OpenRequest& owner, RingMode mode, size_t bytes,
                                         const sys::LazyRights& rights);

  int fd() const { return owner_.fd.get(); }
  RingReader& reader() { return reader_; }
  const RingReader& reader() const { return reader_; }
  const UserPage* page() const { return reinterpret_cast<const UserPage*>(mapping_.data()); }

  // Returns the bytes that were written and not yet read. For streaming rings.
  uint64_t fill_bytes() const { return LoadShared(page()->data_head) - page()->data_tail; }

  // Lets `event_fd` write into this ring from now on. If the event had another ring, waits for the kernel's RCU, about
  // 10 ms. Errors: those of the ioctl.
  absl::Status TakeOutputOf(int event_fd) const;
  // Stops or restarts writing to the ring. Errors: those of the ioctl.
  absl::Status Pause(bool pause) const;

  // In a forked child: no method may be called afterwards.
  void OnForkedChild() {
    owner_.fd.Reset();
    mapping_.Forget();
  }

 private:
  OutputRing() = default;

  OpenedEvent owner_;  // Declared first, so that the ring is unmapped before the event is closed.
  sys::Mapping mapping_;
  RingReader reader_;
};

}  // namespace perfkit::open

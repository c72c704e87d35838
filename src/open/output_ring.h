// A ring that events write into: the sibling of LiveRing for those who read every record.
//
//   event ──┐
//   event ──┼─ SET_OUTPUT ──> ring owner: a dummy event, which alone is mapped ──> RingReader
//   event ──┘
//
// The ring owner counts nothing. It decides how large the ring is and when it wakes whoever polls; it may be switched
// off all the same, or on, when it carries side-band records of its own. Pausing it stops all of them. Because no other
// event is mapped, they may come and go, be inherited, and move to another ring.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "perfkit/ring_reader.h"
#include "src/open/open_event.h"
#include "src/sys/mapping.h"

namespace perfkit::open {

class OutputRing {
 public:
  // Opens `owner` (write_backward is set by `mode`) and maps `bytes`, a power of two of at least a page.
  // Errors: those of OpenEvent; ResourceExhausted when this user may lock no more memory.
  static absl::StatusOr<OutputRing> Open(const OpenRequest& owner, RingMode mode, size_t bytes,
                                         const sys::Rights& rights);

  int fd() const { return owner_.fd.get(); }
  RingReader& reader() { return reader_; }
  const RingReader& reader() const { return reader_; }
  const UserPage* page() const { return reinterpret_cast<const UserPage*>(mapping_.data()); }

  // Bytes that were written and not yet read: of a streaming ring.
  uint64_t fill_bytes() const { return LoadShared(page()->data_head) - page()->data_tail; }

  // Lets `event` write here from now on. An event that had another ring waits for the kernel's RCU: 10 ms.
  absl::Status TakeOutputOf(int event_fd) const;
  absl::Status Pause(bool pause) const;

  // In the child of a fork: from then on nothing here may be used.
  void OnForkedChild() {
    owner_.fd.Reset();
    mapping_.Forget();
  }

 private:
  OutputRing() = default;

  OpenedEvent owner_;  // declared first: unmapped before it is closed
  sys::Mapping mapping_;
  RingReader reader_;
};

}  // namespace perfkit::open

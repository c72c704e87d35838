// Names the threads that preempt others. Owns a sampler of all switches on all CPUs, beside the session's own sampler,
// and holds preempted waits back until that sampler's records were read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/profile_builder.h"
#include "perfkit/sampler.h"
#include "src/session/foreign_wakers.h"
#include "src/session/off_cpu.h"
#include "src/session/preemptions.h"
#include "src/session/sched_events.h"

namespace perfkit::session {

// Not thread-safe.
class Preempters {
 public:
  // `pid`: the calling process. `wakers`: also find out who wakes its threads from outside of it. Errors: as
  // SwitchFormat::Read, WakingFormat::Read and Sampler::Open.
  static absl::StatusOr<std::unique_ptr<Preempters>> Open(uint32_t pid, size_t memory_bytes, bool wakers);

  // As those of Sampler.
  absl::Status Start() { return sampler_.Start(); }
  absl::Status Stop() { return sampler_.Stop(); }
  absl::Status Pause() { return sampler_.Pause(); }
  absl::Status Resume();

  // Reads the records until now, except for those of the latest 50 us.
  void Read();

  // Returns what woke a thread of this process at the end of a wait, if that was not a thread of this process. May Read.
  std::optional<Waker> WakerOf(uint32_t tid, uint64_t from_ns, uint64_t to_ns);

  // Holds a preempted wait of thread `tid`, which has ended, back until Release.
  void Hold(const OffCpuSpan& span, uint32_t tid);
  // Emits all waits that were held back, each with its preempter if that is known. Requires a Read since the session's
  // own records were read. `profile`: its threads say whether a preempter is of this process.
  void Release(const Profile& profile, OffCpu::Emit emit);

  // Returns the wait of threads that `preempter` preempted: the same one for equal preempters.
  uint32_t WaitOf(const Preempter& preempter, ProfileBuilder& builder);
  // Forgets the waits that WaitOf has returned. To be called when the profile's waits were dropped or renumbered.
  void ForgetWaits() { waits_.clear(); }

  // Returns the number of switches that were read.
  uint64_t switches() const { return switches_; }
  void AddAccounting(ProfileAccounting& accounting) const;

 private:
  struct Held {
    OffCpuSpan span;
    uint32_t tid = 0;
  };
  using WaitKey = std::tuple<uint32_t, std::string, bool, uint32_t>;

  Preempters(Sampler sampler, SwitchFormat format, std::optional<WakingFormat> wakings, uint32_t pid);

  void Add(const SamplerRecord& record);
  void AddWaking(const SamplerRecord& record, const std::optional<Sample>& sample);
  bool IsOwn(const Profile& profile, uint32_t tid, const OffCpuSpan& span) const;

  Sampler sampler_;
  const SwitchFormat format_;
  const uint32_t pid_;
  Preemptions preemptions_;
  std::vector<Held> held_;
  std::map<WaitKey, uint32_t> waits_;
  uint64_t switches_ = 0;
  const std::optional<WakingFormat> wakings_;  // nullopt: wakers are not asked for
  ForeignWakers wakers_;
  uint64_t read_ns_ = 0;  // when the last Read began
};

}  // namespace perfkit::session

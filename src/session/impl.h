// A session: its sampler, its profile, and the thread that adds the sampler's records to the profile.
//
//   kRunning ── Stop, stop_after, replaced ──> kStopped ── Stop ──> kTaken
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/session.h"
#include "src/session/aggregator.h"
#include "src/session/flight_recorder.h"
#include "src/session/idle_watch.h"
#include "src/session/open_sampler.h"
#include "src/session/record_store.h"
#include "src/session/reductions.h"
#include "src/session/ring_keeper.h"
#include "src/session/unwind_backlog.h"
#include "src/sys/fork_registry.h"
#include "src/sys/waiter.h"
#include "src/sys/worker_thread.h"

namespace perfkit::session {

// Thread-safe.
class Impl {
 public:
  static absl::StatusOr<std::shared_ptr<Impl>> Start(SessionOptions options);
  ~Impl();

  absl::StatusOr<Profile> Stop();
  absl::StatusOr<Profile> Snapshot();
  absl::Status Gate(bool paused);
  absl::Status Poll();
  // Stops sampling; Stop still returns the profile.
  void Halt();

  int poll_fd() const { return poll_fd_; }
  // Returns true until sampling has ended and the last records have been read (kStopped). Does not wait: Session::Start
  // calls it with a ForkBlocker, while a callback of this session may wait to fork.
  bool running() const;
  bool in_forked_child() const;

 private:
  // kStopping: sampling has ended, and the last records are being read.
  enum class Phase : uint8_t { kRunning, kStopping, kStopped, kTaken };
  static constexpr uint64_t kDrainedAfterNs = 1'000'000;  // A Drain delivers all records that are at least this old.

  Impl(SessionOptions options, OpenedSampler opened, AggregatorOptions aggregator);

  static void OnForkedChild(void* impl);

  void Work();
  int WaitMs() const;
  // Stops sampling if no thread has run for SessionOptions::stop_when_idle.
  void StopIfIdle();
  void Drain();
  void ReadRecords();
  void CheckStolenTimes();
  // kOverwrite: adds a record that is part of the next profile.
  void AddRecorded(const SamplerRecord& record);
  void ReadRings(absl::FunctionRef<void(const SamplerRecord& record)> visit);
  void KeepRecords();
  bool StepNaming();
  void FindRunning();
  void HaltLocked();
  Profile MakeProfile(uint64_t to_ns);
  absl::Status CheckUsable() const;

  const SessionOptions options_;
  const int owner_pid_;
  // Guards all that follows but poll_fd_, idle_, waiter_ and thread_. While its owner looks up names, keeper_'s thread
  // uses sampler_, backlog_ and the preempters.
  mutable std::mutex mutex_;
  std::optional<Sampler> sampler_;  // until the profile is taken
  const int poll_fd_;
  Aggregator aggregator_;
  RecordStore kept_;       // kOverwrite: the side band
  UnwindBacklog backlog_;  // kStream: records that came while stacks were unwound or names looked up
  std::vector<std::string> notes_;
  FlightRecorder flight_;                      // kOverwrite
  Reductions reductions_;
  IdleWatch idle_;                             // used by the session's thread only
  std::atomic<Phase> phase_{Phase::kRunning};  // running() reads it without mutex_
  bool paused_ = false;
  // Times, by CLOCK_MONOTONIC.
  struct {
    uint64_t started_ns = 0, stopped_ns = 0;
    uint64_t drained_ns = 0;   // when the last Drain began
    uint64_t named_ns = 0;     // when StepNaming returned true last
    uint64_t idle_due_ns = 0;  // when StopIfIdle looks again; 0: at once
  } at_;
  uint64_t own_cpu_ns_ = 0;  // without Drain, whose time the sampler measures
  std::optional<sys::Waiter> waiter_;
  RingKeeper keeper_{[this] { KeepRecords(); }};  // kStream, with a thread of its own
  sys::WorkerThread thread_;
  sys::ForkListener fork_listener_{OnForkedChild, this};
};

}  // namespace perfkit::session

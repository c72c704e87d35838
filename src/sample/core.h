// A sampler's inside: opens, switches, drains, keeps the books.
//
// core.cc opens and attaches; core_control.cc switches and pauses; core_drain.cc reads; core_threads.cc follows threads
// that come and go; core_books.cc settles losses.
#pragma once

#include <memory>
#include <vector>

#include "src/ring/time_merge.h"
#include "src/sample/bank.h"
#include "src/sample/books.h"
#include "src/sample/id_table.h"
#include "src/sample/plan.h"
#include "src/sample/roster.h"
#include "src/sys/fork_registry.h"

namespace perfkit::sample {

using Visit = absl::FunctionRef<void(const SamplerRecord&)>;

// By any clock.
uint64_t Now(clockid_t clock);

class Core {
 public:
  static absl::StatusOr<std::unique_ptr<Core>> Open(Plan plan);
  explicit Core(Plan plan);

  absl::Status Start();
  absl::Status Stop();
  absl::Status Pause();
  absl::Status Resume();
  absl::Status SetRate(size_t event, SampleRate rate);
  size_t Drain(Visit visit);
  absl::StatusOr<Sampler::Takeover> Snapshot();
  SamplerStats Stats();

  const Plan& plan() const { return plan_; }
  int poll_fd() const { return epoll_.get(); }
  size_t ring_bytes() const { return ring_bytes_; }
  size_t rings() const { return bank_.rings.size(); }
  const absl::Status& shrunk() const { return shrunk_; }
  bool narrowed(size_t event) const;

 private:
  // Who writes under an id.
  struct Writer {
    uint32_t event = Leaf::kCarrier;
    pid_t tid = 0;
    uint64_t clock_period_ns = 0;
  };

  absl::Status OpenAll();
  absl::Status ChooseSize(size_t rings);
  absl::Status AttachThreads();
  absl::Status AttachOne(pid_t tid);
  absl::Status ExplainDescriptors(const absl::Status& status, size_t threads) const;
  absl::Status OpenPoll();
  absl::Status Poll(const RingSlot& slot);
  // Makes ids, writers and the merge those of the bank's rings and leaves.
  void Index();

  absl::Status CheckHere() const;
  absl::Status ApplyRates();

  void DeliverState(Visit visit);
  size_t DrainOne(Visit visit);
  size_t DrainMany(Visit visit);
  size_t DrainOverwritten(Visit visit);
  void DrainBackwards(Bank& bank, Visit visit);
  template <class Each>
  void ForEachLeaf(Each&& each);
  void Deliver(const RawRecord& raw, RingSlot& slot, Visit visit);
  void DeliverSample(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit);
  void DeliverOther(const RawRecord& raw, RingSlot& slot, uint64_t time_ns, Visit visit);
  void TakeTask(const RawRecord& raw);
  // Rings::kPerThread: rings for threads that were born, none for those that have ended.
  void FollowThreads();
  void JoinNewcomers();
  void RetireEnded();
  void TakeLoss(const RawRecord& raw, const RingSlot& slot, uint64_t time_ns);
  uint32_t WriterOf(const RawRecord& sample) const;
  bool Counts(const RawRecord& raw, const Writer& writer);
  bool CountsOnce(const RawRecord& sample, const Writer& writer, RingSlot& slot, uint64_t time_ns);
  void DropHungUp();

  // Puts what was lost since the last time into the books.
  void SettleLosses(uint64_t EventBooks::*into);
  void SettleLeaf(Leaf& leaf, uint64_t EventBooks::*into);
  // Of an event that is to be closed: what it counted stays in the books.
  void CloseBooks(Leaf& leaf);
  void SettleBeforeDrain();
  void SettleAtEnd();

  void LetGo();

  Plan plan_;
  Effort effort_;
  Bank bank_;   // what is being written
  Bank spare_;  // kOverwrite: what takes over at the next snapshot, or holds the last one
  IdTable ids_;
  std::vector<Writer> writers_;
  uint32_t stand_in_ = IdTable::kNone;  // of samples under an id that is not ours: who has written them
  Roster roster_;
  Books books_;
  ring::TimeMerge merge_;
  sys::OwnedFd epoll_;
  size_t ring_bytes_ = 0;
  absl::Status shrunk_;
  bool newcomers_ = false;     // threads were born since the last drain
  std::vector<pid_t> ending_;  // have ended in this drain: their rings may still hold something
  std::vector<pid_t> ended_;   // in the one before
  uint64_t threads_missed_ = 0;
  std::vector<std::byte> state_;  // at the start, as records that are still to be delivered
  bool snapshot_ = false;         // spare_ holds one that is to be drained
  size_t given_ = 0;              // records that the drain under way has handed out
  bool running_ = false;
  bool paused_ = false;
  bool gone_ = false;          // in the child of a fork
  bool paused_since_ = false;  // since losses were settled: some of them are `paused`
  bool full_since_ = false;    // since then: some may be real ones
  sys::ForkWatch fork_watch_;  // last: nobody may be told to let go of what is not there yet
};

// Of both banks.
template <class Each>
void Core::ForEachLeaf(Each&& each) {
  for (Leaf& leaf : bank_.leaves) each(leaf);
  for (Leaf& leaf : spare_.leaves) each(leaf);
}

}  // namespace perfkit::sample

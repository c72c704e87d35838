// The counters of one thread around a loop. Start and Stop read the set, and each pause divides the loop into segments,
// whose differences are added up. The cost of an empty loop and of empty segments is measured before the loop with the
// same set, and subtracted (overhead.h).
//
// Two kinds of state outlive a region: the sum of the run, to which its threads add their counts (run_sum.h), and for
// each thread the region that it is in, because PauseTiming has a State only and must find the region.
#include <algorithm>
#include <utility>

#include "perfkit/benchmark_region.h"
#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "perfkit/scope.h"
#include "src/benchmark/adapter/choice.h"
#include "src/benchmark/adapter/column.h"
#include "src/benchmark/adapter/overhead.h"
#include "src/benchmark/adapter/run_sum.h"

namespace perfkit {

struct BenchmarkRegion::Impl {
  using Tally = adapter::Tally;
  using Wanted = adapter::Wanted;

  Impl(const void* state, adapter::Choice chosen, const BenchmarkLoop& loop)
      : state(state), own_counters(loop.own_counters), choice(std::move(chosen)) {
    const std::string refused = OpenSet();
    if (set) overhead = adapter::MeasureOverhead(*set, loop.empty);
    for (const Wanted& wanted : choice.wanted) tallies.push_back(TallyOf(wanted, refused));
  }

  // Opens the set. Returns why there is none, or "".
  std::string OpenSet() {
    if (choice.groups.empty()) return "";
    absl::StatusOr<CounterSet> opened = CounterSet::Open(choice.groups, Target::ThisThread(), {.require_all = false});
    if (!opened.ok()) return FormatReason({}, opened.status());
    set.emplace(*std::move(opened));
    return "";
  }

  // Fills in all that is known before the loop: after it the benchmark's timer runs on until the numbers are filled in.
  Tally TallyOf(const Wanted& wanted, const std::string& refused) const {
    Tally tally{
        .name = wanted.name, .why_not = wanted.why_not, .event = wanted.name, .for_metrics = wanted.for_metrics};
    if (!tally.why_not.empty()) return tally;
    const size_t i = wanted.index;
    if (!set) {
      tally.why_not = refused;
    } else if (!set->fixed_flags(i).counted()) {
      tally.why_not = adapter::WhyNot(*set, i, {});
    } else {
      tally.name = adapter::ColumnName(set->event(i), set->fixed_flags(i));
      tally.of_machine = set->event(i).cpu_wide_only;
      tally.user_only = set->fixed_flags(i).has(Validity::kUserOnly) && !set->event(i).privilege_given;
    }
    return tally;
  }

  // A number that was expected is missing.
  static void Lose(Tally& tally, const Wanted& wanted, std::string why_not) {
    tally.name = wanted.name;
    tally.why_not = std::move(why_not);
  }

  void Open() noexcept {
    thread = ThreadSerial();
    if (set) set->Read(begin);
    counting = true;
  }

  void Close() noexcept {
    Snapshot end;
    if (set) set->Read(end);
    cross_thread |= ThreadSerial() != thread;
    counting = false;
    ++segments;
    if (set) total.Add(*set, begin, end);
  }

  void Fill(Tally& tally, const Wanted& wanted, int64_t iterations) const {
    if (!tally.why_not.empty()) return;
    if (cross_thread || total.cross_thread() > 0) {
      return Lose(tally, wanted, "began and ended on different threads");
    }
    const size_t i = wanted.index;
    const Count count = total.count(*set, i);
    const std::optional<uint64_t> scaled = count.scaled();
    if (!scaled) return Lose(tally, wanted, adapter::WhyNot(*set, i, count));
    tally.value = overhead.Without(static_cast<double>(*scaled), i, segments, iterations) * set->event(i).scale;
    tally.enabled_ns = count.time_enabled_ns;
    tally.running_ns = count.time_running_ns;
  }

  const void* state;
  std::vector<std::string> (*own_counters)(const void* state);  // As BenchmarkLoop::own_counters.
  adapter::Choice choice;
  std::optional<CounterSet> set;
  adapter::Overhead overhead;
  std::vector<Tally> tallies;  // One for each requested event.
  ScopeTotals total;
  Snapshot begin;
  uint64_t thread = 0;  // ThreadSerial() at the begin of the segment.
  uint64_t segments = 0;
  bool cross_thread = false;  // A segment ended on another thread than it began on, so there is no number.
  bool started = false;       // Between Start and Stop.
  bool counting = false;      // Started, and not paused.
  bool arrived = false;       // Its counts are in the sum of the run.
};

namespace {

// The current run. Never destroyed: benchmarks may run while a program ends.
adapter::RunSum& Run() {
  static adapter::RunSum& run = *new adapter::RunSum;
  return run;
}

// The region that the calling thread is in, and the note of its last one.
struct ThreadState {
  const void* region_state = nullptr;
  void* region = nullptr;  // A BenchmarkRegion::Impl, whose name is private.
  const void* note_state = nullptr;
  std::string note;

  void ForgetNote() {
    note_state = nullptr;
    note.clear();
  }
};

ThreadState& CurrentThread() {
  thread_local ThreadState thread;
  return thread;
}

adapter::Choice ChooseFor(std::optional<std::span<const EventSpec>> events, std::span<const std::string_view> metrics) {
  adapter::Choice choice = events ? adapter::Choose(*events) : adapter::Choose(BenchmarkCounters());
  if (!events) adapter::AddMetrics(choice, BenchmarkMetrics());
  for (const std::string_view metric : metrics) adapter::AddMetrics(choice, metric);
  return choice;
}

}  // namespace

BenchmarkRegion::BenchmarkRegion(const void* state, std::optional<std::span<const EventSpec>> events,
                                 const BenchmarkLoop& loop, std::span<const std::string_view> metrics)
    : impl_(std::make_unique<Impl>(state, ChooseFor(events, metrics), loop)) {
  CurrentThread().region_state = state;
  CurrentThread().region = impl_.get();
}

BenchmarkRegion::~BenchmarkRegion() {
  if (CurrentThread().region != impl_.get()) return;
  CurrentThread().region_state = nullptr;
  CurrentThread().region = nullptr;
}

void BenchmarkRegion::Start() noexcept {
  impl_->started = true;
  impl_->Open();
}

void BenchmarkRegion::Stop(int64_t iterations) noexcept {
  if (!impl_->started) return;
  if (impl_->counting) impl_->Close();
  impl_->started = false;
  impl_->arrived = true;
  for (size_t i = 0; i < impl_->tallies.size(); ++i) {
    impl_->Fill(impl_->tallies[i], impl_->choice.wanted[i], iterations);
  }
  std::vector<std::string> own;
  if (impl_->own_counters != nullptr) own = impl_->own_counters(impl_->state);
  Run().Arrive(iterations, std::move(impl_->tallies), std::move(impl_->choice.metrics), std::move(own));
}

std::optional<BenchmarkRow> BenchmarkRegion::Leave() {
  if (!std::exchange(impl_->arrived, false)) return std::nullopt;
  BenchmarkRow row = Run().Leave();
  CurrentThread().note_state = impl_->state;
  CurrentThread().note = row.note;
  return row;
}

void BenchmarkRegion::Pause(const void* state) noexcept {
  if (CurrentThread().region == nullptr || CurrentThread().region_state != state) return;
  Impl& impl = *static_cast<Impl*>(CurrentThread().region);
  if (impl.counting) impl.Close();
}

void BenchmarkRegion::Resume(const void* state) noexcept {
  if (CurrentThread().region == nullptr || CurrentThread().region_state != state) return;
  Impl& impl = *static_cast<Impl*>(CurrentThread().region);
  if (impl.started && !impl.counting) impl.Open();
}

void BenchmarkRegion::Begin() noexcept {
  CurrentThread().ForgetNote();
  Run().Begin();
}

void BenchmarkRegion::End() noexcept { Run().End(); }

void BenchmarkRegion::SetLabel(void* state, const std::string& label, bool begun,
                               void (*set)(void* state, const std::string& label)) {
  ThreadState& thread = CurrentThread();
  if (!begun) thread.ForgetNote();
  const bool noted = thread.note_state == state && !thread.note.empty();
  const bool own = noted && label.ends_with(thread.note);  // Set by a region.
  Run().SetLabel(own ? nullptr : &label, noted ? thread.note : "", begun,
                 [&](const std::string& text) { set(state, text); });
}

}  // namespace perfkit

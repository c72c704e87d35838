// A random walk over the controls of samplers: start, stop, pause, rates, drains of any length and with visitors that
// throw, foreign samplers, forks, new threads. In between, pages are touched, each once, so the expected result is
// known: page by page while the period is 1, by the accounting and the weights always.
//
// A walk is made from one number, its seed: tests/support/walk.h.
#include "tests/support/walk.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/sample/support.h"
#include "tests/sample/walk_case.h"
#include "tests/sample/walk_support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/raw_sampling.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::walk {
namespace {

// One walk, and its expected results.
class Walker {
 public:
  explicit Walker(const Walk& walk) : walk_(walk) {}

  // What is wrong; empty if nothing is.
  std::string Run() {
    SamplerOptions options;
    options.events = {{.event = "page-faults:u", .rate = Period{1}}};
    if (walk_.two_events) options.events.push_back({.event = "minor-faults:u", .rate = Period{1}});
    options.fields = kSampleAddr;
    options.side_band = walk_.side_band;
    options.switches = walk_.switches;
    options.rings = walk_.rings;
    options.ring_bytes = walk_.ring_bytes;
    if (walk_.overwrites) options.mode = RingMode::kOverwrite;
    if (walk_.dumps) options.stack = CallStack::UserDump(512);
    if (walk_.budget) options.cpu_budget = 1e-6;
    exact_ = !walk_.budget;
    begin_ns_ = testing::NowNs();
    const Target target = walk_.all_threads ? Target::AllThreads() : Target::ThisThread();
    std::optional<absl::StatusOr<Sampler>> sampler;
    if (walk_.extra != kNoExtra) {
      extra_at_ = options.events.size();
      options.events.push_back({.event = kExtras[walk_.extra].event, .rate = Period{kExtras[walk_.extra].period}});
      sampler.emplace(Sampler::Open(options, target));
      if (!sampler->ok()) {  // This user may not.
        options.events.pop_back();
        extra_at_ = SIZE_MAX;
      }
    }
    if (!sampler || !sampler->ok()) sampler.emplace(Sampler::Open(options, target));
    if (!sampler->ok()) return std::string(sampler->status().message());
    sampler_.emplace(**std::move(sampler));
    delivered_.resize(options.events.size());
    std::optional<testing::SignalStorm> signals;
    if (walk_.signals) signals.emplace([] {}, 500);
    for (const Move& move : walk_.moves) {
      Make(move);
      if (walk_.check_each) CheckAccounting();
      if (!wrong_.empty()) return wrong_;
    }
    files_.Restore();
    Check(sampler_->Stop(), "Stop");
    running_ = false;
    if (paused_) Check(sampler_->Resume(), "Resume");
    for (int i = 0; i < 2; ++i) Drain(SIZE_MAX, SIZE_MAX);
    CheckAccounting();
    CheckPages();
    raw_.reset();
    sampler_.reset();
    foreign_.reset();
    if (!kernel_.Leaks().empty()) Wrong("leaks " + kernel_.Leaks());
    return wrong_;
  }

 private:
  // Pages that one thread touched in a row, while it was known whether the thread is sampled.
  struct Batch {
    size_t first = 0, pages = 0;
    bool sampled = false;  // each of them, or lost
    bool hidden = false;   // none of them
  };

  void Wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  void Check(const absl::Status& status, const char* what) {
    if (files_.is_low() && absl::IsResourceExhausted(status)) return;
    if (!status.ok()) Wrong(absl::StrFormat("%s: %s", what, std::string(status.message())));
  }

  void Make(const Move& move) {
    switch (move.step) {
      case Step::kTouch: return Touch(move.number, true, [](const auto& touch) { touch(); });
      case Step::kTouchElsewhere:
        return Touch(move.number, walk_.all_threads && joined_, [this](const auto& touch) { companion_->Do(touch); });
      case Step::kTouchNew:
        return Touch(move.number, walk_.all_threads && walk_.rings == SamplerOptions::Rings::kPerCpu,
                     [](const auto& touch) { std::thread(touch).join(); });
      case Step::kStart:
        running_ = true;
        joined_ = joined_ || !files_.is_low();
        return Check(sampler_->Start(), "Start");
      case Step::kStop: running_ = false; return Check(sampler_->Stop(), "Stop");
      case Step::kPause: paused_ = true; return Check(sampler_->Pause(), "Pause");
      case Step::kResume: paused_ = false; return Check(sampler_->Resume(), "Resume");
      case Step::kRate: return SetRate(move.number);
      case Step::kDrain: return Drain(SIZE_MAX, SIZE_MAX);
      case Step::kDrainSome: return Drain(move.number, SIZE_MAX);
      case Step::kDrainThrow: return Drain(SIZE_MAX, move.number);
      case Step::kForeign: return Foreign();
      case Step::kForeignRaw:
        if (raw_) return raw_.reset();
        return (void)raw_.emplace(!testing::kSanitized && move.number % 2 == 0);
      case Step::kFork: return Fork();
      case Step::kAccounting: return CheckAccounting();
      case Step::kSnapshot:
        if (walk_.overwrites && running_) Check(sampler_->Snapshot().status(), "Snapshot");
        return;
      case Step::kStackBytes:
        if (walk_.dumps && !walk_.overwrites)
          Check(sampler_->SetStackBytes(8 * static_cast<uint32_t>(move.number)), "SetStackBytes");
        return;
      case Step::kSuccessor: {
        companion_.emplace();
        born_ns_ = testing::NowNs();
        joined_ = walk_.rings == SamplerOptions::Rings::kPerCpu;
        return;
      }
      case Step::kSwitchAway: return Switch(move.number);
      case Step::kGetppid: return Call(move.number);
      case Step::kSpin: testing::Spin(20'000 * move.number); return;
      case Step::kFewFiles: return files_.LeaveOnly(move.number % 16);
      case Step::kEnoughFiles: return files_.Restore();
      case Step::kInterrupt: return kernel_.FailNth(move.number, EINTR, testing::Call::kRead);
      case Step::kSteps: return;
    }
  }

  bool ExtraIs(std::string_view event) const {
    return running_ && extra_at_ != SIZE_MAX && kExtras[walk_.extra].event == event;
  }
  // These are counted by the kernel, if it counts them here.
  void Switch(size_t times) {
    const uint64_t before = testing::SwitchesByUsage();
    testing::SwitchAway(static_cast<int>(times % 4 + 1));
    if (ExtraIs("context-switches")) extra_at_least_ += testing::SwitchesByUsage() - before;
  }
  void Call(size_t times) {
    for (size_t i = 0; i < times; ++i) syscall(SYS_getppid);
    if (ExtraIs("syscalls:sys_enter_getppid")) extra_at_least_ += times;
  }

  template <class By>
  void Touch(size_t pages, bool is_target, By&& by) {
    if (next_ + pages > memory_.pages()) return;
    Batch batch{next_, pages};
    batch.sampled = is_target && running_ && !paused_ && exact_;
    batch.hidden = !running_ || paused_ || (!is_target && !walk_.all_threads);
    next_ += pages;
    const std::function<void()> touch = [&] { memory_.Touch(batch.first, batch.pages); };
    by(touch);
    if (is_target && running_) counted_at_least_ += pages;
    batches_.push_back(batch);
  }

  // Where threads inherit their events the new rate holds from some Drain on.
  void SetRate(size_t period) {
    exact_ = exact_ && period == 1;
    max_ = std::max(max_, period);
    const testing::OtherFaults during;
    Check(sampler_->SetRate(0, Period{period}), "SetRate");
    // Threads' own events change one after the other, and of a foreign sample it is not known which of them wrote it.
    if (foreign_) either_rate_ += during.Beside(0) * max_;
  }

  void Drain(size_t most, size_t thrown_at) {
    // The records of the last 50 us stay in the rings.
    const bool sees_all = most == SIZE_MAX && testing::NowNs() > born_ns_ + 100'000;
    size_t given = 0;
    const auto visit = [&](const SamplerRecord& record) {
      ++given;
      if (record.type == static_cast<uint32_t>(RecordType::kSample)) {
        const std::optional<Sample> sample = Sample::Parse(record, sampler_->layout());
        if (!sample || record.event >= delivered_.size()) return Wrong("a sample that cannot be parsed");
        ++delivered_[record.event];
        if (record.event == 0) ++seen_[*sample->address() >> 12];
        if (!record.foreign && (*sample->time_ns() < begin_ns_ || *sample->time_ns() > testing::NowNs()))
          return Wrong("a sample of another time");
      }
#if !defined(PERFKIT_NO_EXCEPTIONS) && defined(__cpp_exceptions)
      if (given == thrown_at) throw Thrown();
#else
      (void)thrown_at;
#endif
    };
#if defined(__cpp_exceptions)
    try {
      (void)sampler_->Drain(visit, most);
    } catch (const Thrown&) {
    }
#else
    (void)sampler_->Drain(visit, most);
#endif
    if (sampler_->target_ended()) Wrong("the target is said to have ended");
    if (sees_all && given < thrown_at && running_ && !files_.is_low()) joined_ = true;
    if (given > most && !walk_.side_band && !walk_.overwrites)
      Wrong(absl::StrFormat("%d records where %d were allowed", given, most));
  }

  void Foreign() {
    if (foreign_) return foreign_.reset();
    absl::StatusOr<Sampler> foreign = Sampler::Open(testing::FaultOptions(64 << 10));
    if (!foreign.ok() || !foreign->Start().ok()) return;
    foreign_.emplace(*std::move(foreign));
  }

  void Fork() {
    if (testing::kSanitized) return;  // there are other threads
    const pid_t child = fork();
    if (child == 0) {
      memory_.Touch(next_, std::min<size_t>(10, memory_.pages() - next_));
      const bool nothing = sampler_->Drain([](const SamplerRecord&) {}) == 0 && sampler_->stats().events.empty();
      _exit(nothing ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) Wrong("the child of a fork has samples");
  }

  std::string Text(const EventAccounting& event, size_t i) const {
    return absl::StrFormat(
        "event %d: counted %d, delivered %d, duplicates %d, lost %d, paused %d, malformed %d, represented %d, known %d, "
        "given %d",
        i, event.counted, event.delivered, event.duplicates, event.lost, event.paused, event.malformed,
        event.represented, i == 0 ? counted_at_least_ : i == extra_at_ ? extra_at_least_ : 0, delivered_[i]);
  }

  // Delivered + lost = counted, and the samples do not represent more than was counted.
  void CheckAccounting() {
    const SamplerStats stats = sampler_->stats();
    for (size_t i = 0; i < stats.events.size(); ++i) CheckEvent(stats.events[i], i);
    if (stats.lost_is_lower_bound) Wrong("losses are a lower bound");
    const uint64_t refused = files_.was_low() ? 0 : stats.decisions_refused;
    if (stats.events_stuck + refused + stats.unattributed + stats.malformed_bytes > 0) {
      Wrong(absl::StrFormat("stuck %d, refused %d, unattributed %d, malformed %d", stats.events_stuck,
                            stats.decisions_refused, stats.unattributed, stats.malformed_bytes));
    }
  }

  void CheckEvent(const EventAccounting& event, size_t i) {
    const std::string accounting = Text(event, i);
    const bool is_extra = i == extra_at_, clock = is_extra && kExtras[walk_.extra].clock;
    const uint64_t known = i == 0 ? counted_at_least_ : is_extra ? extra_at_least_ : 0;
    // A clock's timer may come a little before the period is over.
    const uint64_t slack = clock ? kExtras[walk_.extra].period : i == 0 ? either_rate_ : 0;
    if (event.counted_is_lower_bound) Wrong("a lower bound: " + accounting);
    if (event.delivered != delivered_[i]) Wrong("what was given is not what is delivered: " + accounting);
    if (CountNow(event, i) < known + (clock ? 0 : event.duplicates)) Wrong("less than is known: " + accounting);
    if (event.represented > event.counted + slack) Wrong("more is represented than was counted: " + accounting);
    // A sample represents at least itself, and no more at a period of 1.
    if (event.represented < event.delivered) Wrong("samples represent nothing: " + accounting);
    if (IsEach(i) && event.represented != event.delivered) Wrong("single events represent others: " + accounting);
    // What is still in streaming rings is counted, and accounted for nowhere else yet.
    if (!clock && event.accounted() > event.counted) Wrong("more in the accounting than was counted: " + accounting);
  }

  // Overwriting rings that were not taken yet hold samples that are not in the accounting.
  uint64_t CountNow(const EventAccounting& event, size_t i) {
    if (!walk_.overwrites || !running_) return event.counted;
    uint64_t sum = 0;
    for (const SamplerCount& count : sampler_->counts()) sum += count.event == i && !count.full_stack ? count.counted : 0;
    if (sum < event.counted) Wrong("a snapshot has more than was counted: " + Text(event, i));
    return sum;
  }

  // Returns true if event `i` has always had the period 1.
  bool IsEach(size_t i) const {
    if (walk_.budget) return false;
    return i == 0 ? max_ == 1 : i != extra_at_ || kExtras[walk_.extra].period == 1;
  }

  // Each event of period 1 is in the accounting.
  void CheckBalance(const SamplerStats& stats, bool whole) {
    for (size_t i = 0; i < stats.events.size() && whole; ++i) {
      const EventAccounting& event = stats.events[i];
      if (IsEach(i) && event.accounted() != event.counted) Wrong("the accounting does not balance: " + Text(event, i));
    }
  }

  void CheckPages() {
    const SamplerStats stats = sampler_->stats();
    const EventAccounting& event = stats.events[0];
    const bool whole = !walk_.overwrites || stats.overwritten_bytes == 0;
    CheckBalance(stats, whole);
    size_t missing = 0;
    const uint64_t first_page = reinterpret_cast<uint64_t>(memory_.data()) >> 12;
    for (const Batch& batch : batches_) {
      for (size_t i = batch.first; i < batch.first + batch.pages; ++i) {
        const auto found = seen_.find(first_page + i);
        const int times = found == seen_.end() ? 0 : found->second;
        if (times > 1) Wrong(absl::StrFormat("page %d comes %d times", i, times));
        if (times > 0 && batch.hidden) Wrong(absl::StrFormat("page %d comes, but should not", i));
        missing += batch.sampled && times == 0;
      }
    }
    if (whole && missing > event.lost) Wrong(absl::StrFormat("%d pages are missing, %d lost", missing, event.lost));
  }

  const Walk walk_;
  testing::FreshPages memory_{4096};
  std::optional<Companion> companion_{std::in_place};
  bool joined_ = true;  // to the sampler: one of its own rings is found at Start, or by a drain that comes later
  testing::FakeKernel kernel_;
  std::optional<Sampler> sampler_, foreign_;
  std::optional<testing::RawSampling> raw_;
  uint64_t begin_ns_ = 0, born_ns_ = 0;  // The walk, and the other thread.
  size_t next_ = 0;
  bool running_ = false, paused_ = false;
  bool exact_ = true;         // each event is sampled
  uint64_t either_rate_ = 0;  // so much more may be represented
  size_t max_ = 1;            // the longest period there was
  uint64_t counted_at_least_ = 0, extra_at_least_ = 0;
  size_t extra_at_ = SIZE_MAX;  // The index of the event beside page faults.
  std::vector<uint64_t> delivered_;
  FileLimit files_;
  std::vector<Batch> batches_;
  std::map<uint64_t, int> seen_;
  std::string wrong_;
};

void WalkSamplersFor(uint64_t seconds) {
  const auto run = [](const Walk& walk) { return Walker(walk).Run(); };
  WalkWithTracefsFor(seconds, "samplers", MakeWalk, run, [](auto& shrinker) {
    shrinker.TryWithout(&Walk::moves);
    shrinker.Try([](Walk& less) { less.extra = kNoExtra; });
    shrinker.Try([](Walk& less) { less.signals = false; });
    shrinker.Try([](Walk& less) { less.check_each = false; });
    shrinker.Try([](Walk& less) { less.side_band = false; });
  });
}

TEST_CASE("random controls of samplers in random order: the accounting balances, each page comes once",
          "[sampler_walk][many][law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer's runtime takes more faults of its own than the walk");
  WalkSamplersFor(kUsualSeconds);
}

TEST_CASE("random controls of samplers, for long", "[.heavy][law]") { WalkSamplersFor(kHeavySeconds); }

}  // namespace
}  // namespace perfkit::walk

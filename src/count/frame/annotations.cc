// The part of annotations.h that its macros do not inline: frames by name, runs (zones that are ended by their name),
// zones that are entered and left by separate calls, names of threads, and the counts that Tracy shows.
//
// The FrameCounter is one atomic pointer, so that an annotated zone costs one load if there is none. What else belongs
// to it is one object. It is replaced when another FrameCounter is used, and never destroyed: Tracy keeps pointers to
// the names of plots, and another thread may still use the object that was replaced. Open zones are thread-local.
#include "perfkit/annotations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "src/count/frame/frame_counter_impl.h"

namespace perfkit {
namespace detail {

constinit std::atomic<FrameCounter*> annotated_frames{nullptr};

namespace {

using Zone = FrameCounter::Zone;

// What belongs to one FrameCounter that is or was used.
struct Annotations {
  FrameCounter* frames = nullptr;  // To be used only if this is Now(), or is_alive().
  std::weak_ptr<count::FrameCounterImpl> impl;
  uint64_t marking_serial = 0;  // ThreadSerial of the thread that marks the main frames.
  std::array<std::string, kMaxEvents> texts{};  // The names of the events; `names` points into them.
  std::array<const char*, kMaxEvents> names{};
  size_t size = 0;
  std::optional<uint64_t> last_number;  // Number of the frame returned last. Marking thread only.
  Annotations* previous = nullptr;

  bool is_alive() const {
    const std::shared_ptr<count::FrameCounterImpl> counter = impl.lock();
    return counter != nullptr && !counter->closed();
  }
};

// That of annotated_frames.
constinit std::atomic<Annotations*> annotations{nullptr};

Annotations* Now() { return annotations.load(std::memory_order_acquire); }  // pairs with UseAnnotations

// A run that has started. A run that is not counted, for want of room or of a FrameCounter, is remembered only by
// `uncounted` of the open run with the same name, whose end comes after its own.
struct Run {
  const Annotations* of = nullptr;
  const char* name = nullptr;
  size_t uncounted = 0;
  alignas(Zone) std::byte storage[sizeof(Zone)];  // Moved as bytes with its Run: nothing may point to a Zone.

  Zone& zone() { return *std::launder(reinterpret_cast<Zone*>(storage)); }
};

// The runs of a thread. No destructor ends their zones at the end of the thread, because the FrameCounter may be
// destroyed by then.
class Runs {
 public:
  // Returns the innermost run with this name; nullptr if there is none. Forgets the runs of FrameCounters that were
  // destroyed.
  Run* Find(const char* name) noexcept {
    const auto alive = std::stable_partition(begin(), end(), [](const Run& run) { return run.of->is_alive(); });
    size_ = static_cast<size_t>(alive - begin());
    for (size_t i = size_; i > 0; --i) {
      if (std::strcmp(runs_[i - 1].name, name) == 0) return &runs_[i - 1];
    }
    return nullptr;
  }
  bool is_full() const { return size_ == kMaxRuns; }
  Run& Add() noexcept { return runs_[size_++]; }
  void Remove(Run& run) noexcept {
    std::rotate(&run, &run + 1, &*begin() + size_);
    --size_;
  }

 private:
  std::array<Run, kMaxRuns>::iterator begin() { return runs_.begin(); }
  std::array<Run, kMaxRuns>::iterator end() { return begin() + static_cast<ptrdiff_t>(size_); }

  size_t size_ = 0;
  std::array<Run, kMaxRuns> runs_{};
};
constinit thread_local Runs thread_runs;

// The annotated Enters of a thread that have no Leave yet. For each, the Annotations of the FrameCounter that it
// entered; nullptr if it is not counted. Those beyond kMaxEntered are not counted, either.
struct Entered {
  size_t depth = 0;
  std::array<const Annotations*, kMaxEntered> of{};
};
constinit thread_local Entered thread_entered{};

// Uses the same object if the same thread uses the same FrameCounter again: last_number survives a pause, and a program
// that alternates between two FrameCounters allocates nothing.
void Replace(FrameCounter& frames) {
  static std::atomic<Annotations*> latest{nullptr};  // Keeps all of them reachable for leak checkers.
  Annotations* before = latest.load(std::memory_order_acquire);
  const std::shared_ptr<count::FrameCounterImpl> impl = count::FrameCounterImpl::Of(frames);
  for (Annotations* known = before; known != nullptr; known = known->previous) {
    if (known->impl.lock() != impl || known->marking_serial != ThreadSerial()) continue;
    return annotations.store(known, std::memory_order_release);  // pairs with Now
  }
  auto* const now = new Annotations;
  now->frames = &frames;
  now->impl = impl;
  now->marking_serial = ThreadSerial();
  now->size = frames.size();
  for (size_t i = 0; i < now->size; ++i) {
    now->texts[i] = frames.name(i);
    now->names[i] = now->texts[i].c_str();
  }
  do {
    now->previous = before;
  } while (!latest.compare_exchange_weak(before, now, std::memory_order_acq_rel));
  annotations.store(now, std::memory_order_release);  // pairs with Now
}

}  // namespace

void MarkAnnotated(std::string_view name) noexcept {
  FrameCounter* const frames = AnnotatedFrames();
  if (frames != nullptr && frames->enabled()) frames->Mark(count::FrameCounterImpl::Of(*frames)->FrameNamed(name));
}

void MarkAnnotatedType(std::string_view type) noexcept {
  type = type.substr(0, type.find(','));
  const size_t colon = type.rfind(':');
  if (colon != type.npos) type.remove_prefix(colon + 1);
  type.remove_prefix(std::min(type.find_first_not_of(' '), type.size()));
  type = type.substr(0, type.find_last_not_of(' ') + 1);
  if (type.empty() || type == "CPU") return MarkAnnotated();
  MarkAnnotated(type);
}

void StartAnnotatedRun(const char* name) noexcept {
  const Annotations* const now = Now();
  Run* const outer = thread_runs.Find(name);
  if (now == nullptr || thread_runs.is_full()) {
    if (outer != nullptr) ++outer->uncounted;
    return;
  }
  Run& run = thread_runs.Add();
  run.of = now;
  run.name = name;
  run.uncounted = 0;
  new (run.storage) Zone(now->frames, {name});
}

void EndAnnotatedRun(const char* name) noexcept {
  Run* const run = thread_runs.Find(name);
  if (run == nullptr) return;
  if (run->uncounted != 0) {
    --run->uncounted;
    return;
  }
  run->zone().~Zone();
  thread_runs.Remove(*run);
}

void EnterAnnotated(ZoneId id) noexcept {
  Entered& entered = thread_entered;
  if (entered.depth++ >= kMaxEntered) return;
  const Annotations* const now = Now();
  const bool is_counted = now != nullptr && now->frames->enabled();
  entered.of[entered.depth - 1] = is_counted ? now : nullptr;
  if (is_counted) now->frames->Enter(id);
}

void EnterAnnotatedCopy(std::string_view name) {
  FrameCounter* const frames = AnnotatedFrames();
  EnterAnnotated(frames != nullptr ? frames->DefineZone(name) : ZoneId{""});
}

void LeaveAnnotated() noexcept {
  Entered& entered = thread_entered;
  if (entered.depth == 0 || --entered.depth >= kMaxEntered) return;
  const Annotations* const of = entered.of[entered.depth];
  if (of != nullptr && (of == Now() || of->is_alive())) of->frames->Leave();
}

void NameAnnotatedThread(const char* name) noexcept {
  FrameCounter* const frames = AnnotatedFrames();
  if (frames != nullptr && name != nullptr) count::FrameCounterImpl::Of(*frames)->AttachNamed(name);
}

void LeaveAnnotatedThread() noexcept {
  FrameCounter* const frames = AnnotatedFrames();
  if (frames != nullptr) count::FrameCounterImpl::Of(*frames)->DetachWorker();
}

MarkedFrame MarkAnnotatedFrame() noexcept {
  FrameCounter* const frames = AnnotatedFrames();
  if (frames == nullptr) return {};
  frames->Mark();
  Annotations* const now = Now();
  if (now == nullptr || now->marking_serial != ThreadSerial()) return {};
  const FrameRecord& record = frames->last();
  if (frames->history().size() == 0 || now->last_number == record.number) return {};
  now->last_number = record.number;
  return {&record, std::span(now->names).first(now->size)};
}

size_t FormatCounts(const FrameCounter& frames, const FrameRecord& counts, std::span<char> text) noexcept {
  size_t length = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    if ((counts.missing >> i & 1) != 0) continue;
    const std::string_view name = frames.name(i), comma = length != 0 ? ", " : "", colon = ": ";
    std::array<char, 20> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), counts.values[i]);
    const std::string_view number(digits.data(), static_cast<size_t>(end - digits.data()));
    if (comma.size() + name.size() + colon.size() + number.size() > text.size() - length) break;
    for (const std::string_view part : {comma, name, colon, number}) {
      length += part.copy(text.data() + length, part.size());
    }
  }
  return length;
}

}  // namespace detail

void UseAnnotations(FrameCounter* frames) noexcept {
  if (frames != nullptr) {
    detail::Replace(*frames);
  } else {
    detail::annotations.store(nullptr, std::memory_order_release);  // pairs with Now
  }
  detail::annotated_frames.store(frames, std::memory_order_release);  // pairs with AnnotatedFrames
}

}  // namespace perfkit

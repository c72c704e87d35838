// The tasks and frames that are open on one thread, innermost last, each with its zone.
//
// ITT ends a task without naming it: the end belongs to the innermost task of its domain. Frames are ended by domain
// and id. A task or frame that ends also ends all that began inside it.
//
// Another thread may end a collector, and then takes what is open away. Both sides announce first and look second, in
// one total order:
//
//   owner, each begin and end                 Collector::Stop
//   at work = true (exchange)                 ended = true
//   ended? touch nothing                      at work? wait
//                                             else: the entries are its own
//
// A signal handler may interrupt a begin or an end, and leave it by siglongjmp: the thread then is at work for ever. So
// each step leaves the entries in order, whatever comes after it, and the thread's next begin or end can tell that it
// is no handler by its place on the stack (HasJumped).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "perfkit/frame_counter.h"
#include "src/itt/abi.h"

namespace perfkit::itt {

enum class OpenKind : uint8_t { kTask, kFrame };

class Collector;

// Used by its own thread, and by signal handlers on it. Functions for other threads say so.
class OpenTasks {
 public:
  static constexpr uint32_t kMaxDepth = 64;

  struct Entry {
    const Domain* domain = nullptr;
    Id id{};  // Of a frame.
    OpenKind kind = OpenKind::kTask;
    bool has_zone = false;
    alignas(FrameCounter::Zone) std::array<unsigned char, sizeof(FrameCounter::Zone)> zone;
  };

  explicit OpenTasks(int tid) : tid_(tid) {}
  OpenTasks(const OpenTasks&) = delete;
  OpenTasks& operator=(const OpenTasks&) = delete;
  int tid() const { return tid_; }

  // While one lives, the thread is inside of the collector: a handler that interrupts it must count nothing, and
  // Collector::Stop waits. `frame`: __builtin_frame_address(0) of a function that lives longer.
  class Work {
   public:
    Work(OpenTasks& tasks, const void* frame) : tasks_(tasks) {
      // Pairs with Collector::Stop's store of its end.
      tasks_.work_frame_.exchange(reinterpret_cast<uintptr_t>(frame), std::memory_order_seq_cst);
    }
    ~Work() { tasks_.work_frame_.store(0, std::memory_order_release); }  // Pairs with at_work().
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    OpenTasks& tasks_;
  };
  // Any thread. If Collector::Stop gets false after it has stored its end, the owner touches its entries no more.
  bool at_work() const { return work_frame_.load(std::memory_order_seq_cst) != 0; }
  // Returns true if at_work() is true only because a handler has left the collector by siglongjmp. Returns false in a
  // handler, whose frames lie below those that it interrupts by at least the registers that the kernel saves (more than
  // 512 bytes). Returns false, too, for a function that lies as far below, although it is in no handler. Requires the
  // stack that the thread was on before the handler. `frame`: that of the calling function.
  bool HasJumped(const void* frame) const noexcept {
    constexpr uintptr_t kMinHandlerBytes = 256;
    const uintptr_t work_frame = work_frame_.load(std::memory_order_relaxed);
    return work_frame != 0 && reinterpret_cast<uintptr_t>(frame) + kMinHandlerBytes > work_frame;
  }

  // The collector of what is open. Any thread.
  Collector* collector() const { return collector_.load(std::memory_order_relaxed); }
  // What is open belongs to `collector` from now on. Forgets what was open in another one, which has ended.
  void Follow(Collector* collector) noexcept {
    if (this->collector() == collector) [[likely]]
      return;
    collector_.store(collector, std::memory_order_relaxed);
    Forget();
  }
  void Forget() noexcept {
    depth_ = 0;
    zones_.store(0, std::memory_order_relaxed);
  }

  uint32_t depth() const { return depth_; }
  // The number of entries with a zone. Any thread.
  uint32_t zones() const { return zones_.load(std::memory_order_relaxed); }
  // Returns the new entry, without a zone; nullptr if it is too deep. Such a task counts as open, but has no entry.
  Entry* Push(const Domain* domain, OpenKind kind, const Id& id) noexcept {
    if (depth_ >= kMaxDepth) [[unlikely]] {
      ++depth_;
      return nullptr;
    }
    Entry& entry = entries_[depth_];
    entry.domain = domain;
    entry.id = id;
    entry.kind = kind;
    entry.has_zone = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++depth_;
    return &entry;
  }
  // Requires that `entry` is the newest one.
  FrameCounter::Zone* Enter(Entry& entry, FrameCounter& frames, ZoneId id) noexcept {
    auto* const zone = new (entry.zone.data()) FrameCounter::Zone(nullptr, id);  // As yet, there is nothing to leave.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    entry.has_zone = true;
    zones_.store(zones() + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return new (zone) FrameCounter::Zone(frames, id);
  }

  // Returns the number of open tasks and frames that an end ends, the innermost ones: the one that it belongs to, and
  // all inside of it. Returns 0 if it belongs to none. If the innermost one is too deep, the end belongs to that one.
  uint32_t CountTo(const Domain* domain, OpenKind kind, const Id& id) const noexcept {
    if (depth_ > kMaxDepth) return 1;
    for (uint32_t i = depth_; i > 0; --i) {
      const Entry& entry = entries_[i - 1];
      if (entry.kind == kind && entry.id == id && IsSame(entry.domain, domain)) return depth_ - i + 1;
    }
    return 0;
  }
  // Ends the innermost `count`, from the inside. Another thread may do so in place of the owner: the zones have no
  // counts then.
  void Pop(uint32_t count) noexcept {
    for (; count > 0 && depth_ > 0; --count) {
      if (depth_ <= kMaxDepth) Leave(entries_[depth_ - 1]);
      --depth_;
    }
  }
  // Ends all, as Pop does. Returns the number of entries that had a zone, also after a jump.
  uint32_t PopAll() noexcept {
    const uint32_t zones = CountZones();
    Pop(depth_);
    Forget();
    return zones;
  }
  // As zones(), by the entries themselves. For who may change them.
  uint32_t CountZones() const noexcept {
    uint32_t zones = 0;
    for (uint32_t i = 0; i < depth_ && i < kMaxDepth; ++i) zones += entries_[i].has_zone ? 1 : 0;
    return zones;
  }

  // The thread's name from now on: the collector attaches the thread when it next begins a task outside of all zones.
  void Rename(std::string name) {
    name_ = std::move(name);
    attach_ = true;
  }
  bool has_to_attach() const { return attach_ && zones() == 0; }
  // Attaches the thread by its name. Requires has_to_attach().
  void Attach(FrameCounter& frames) {
    attach_ = false;
    attached_.reset();  // Ends the thread of the former name.
    attached_.emplace(frames.AttachThread(name_));
  }

 private:
  // Two copies of ittnotify may each have a domain of one name, from the time before the collector was loaded.
  static bool IsSame(const Domain* a, const Domain* b) noexcept {
    if (a == b) [[likely]]
      return true;
    return a != nullptr && b != nullptr && a->name != nullptr && b->name != nullptr &&
           std::strcmp(a->name, b->name) == 0;
  }
  void Leave(Entry& entry) noexcept {
    if (!entry.has_zone) return;
    std::launder(reinterpret_cast<FrameCounter::Zone*>(entry.zone.data()))->~Zone();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    entry.has_zone = false;
    if (const uint32_t open = zones(); open > 0) zones_.store(open - 1, std::memory_order_relaxed);
  }

  std::array<Entry, kMaxDepth> entries_;
  uint32_t depth_ = 0;  // May exceed kMaxDepth: those have no entries.
  std::atomic<uint32_t> zones_{0};
  std::atomic<Collector*> collector_{nullptr};
  std::atomic<uintptr_t> work_frame_{0};  // Of the Work that lives; 0 if there is none.
  const int tid_;
  bool attach_ = false;
  std::string name_;
  std::optional<FrameCounter::AttachedThread> attached_;
};

}  // namespace perfkit::itt

// The fields of samples, as views of the record's bytes. Nothing is copied or allocated.
//
// The event's attr decides which fields a sample has. A Sample finds them at run time, by a SampleLayout. A
// FixedSample<bits> has them at compile time, for programs with constant options. Both have the same interface.
//
// The order of the fields is that of perf_output_sample (kernel/events/core.c); the comment in the uapi header differs
// and is wrong.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "perfkit/call_chain.h"
#include "perfkit/detail/sample_fields.h"
#include "perfkit/record.h"

namespace perfkit {

// One taken branch: struct perf_branch_entry.
struct Branch {
  uint64_t from = 0, to = 0;
  uint64_t flags = 0;  // The bits that the methods below return.

  // mispredicted() and predicted() are both false if the hardware does not say.
  bool mispredicted() const noexcept { return Bits(0, 1) != 0; }
  bool predicted() const noexcept { return Bits(1, 1) != 0; }
  bool in_transaction() const noexcept { return Bits(2, 1) != 0; }
  bool transaction_abort() const noexcept { return Bits(3, 1) != 0; }
  // Returns the cycles since the previous branch; 0 if the hardware does not say.
  uint16_t cycles() const noexcept { return static_cast<uint16_t>(Bits(4, 16)); }
  uint8_t type() const noexcept { return static_cast<uint8_t>(Bits(20, 4)); }         // PERF_BR_*; BranchTypeName
  uint8_t speculation() const noexcept { return static_cast<uint8_t>(Bits(24, 2)); }  // PERF_BR_SPEC_*
  uint8_t new_type() const noexcept { return static_cast<uint8_t>(Bits(26, 4)); }     // PERF_BR_NEW_*
  uint8_t privilege() const noexcept { return static_cast<uint8_t>(Bits(30, 3)); }    // PERF_BR_PRIV_*

 private:
  uint64_t Bits(unsigned first, unsigned count) const noexcept { return flags >> first & ((1u << count) - 1); }
};

// The latest branches before the sample, newest first. A view: valid as long as the record.
struct BranchStack {
  Bytes entries;
  std::optional<uint64_t> hw_index;  // With kBranchHwIndex: the newest branch's index in the hardware's stack.
  Words counters;                    // With kBranchCounters: one word for each branch.

  // Returns the number of branches.
  size_t size() const noexcept { return entries.size() / 24; }
  bool empty() const noexcept { return entries.empty(); }
  // Returns branch i. Requires i < size().
  Branch operator[](size_t i) const noexcept {
    const std::byte* const at = entries.data() + 24 * i;
    return {detail::Load<uint64_t>(at), detail::Load<uint64_t>(at + 8), detail::Load<uint64_t>(at + 16)};
  }
};

// The values of an event, or of its group, at the time of a sample, in the layout of read(2). A view: valid as long as
// the words.
class ReadValues {
 public:
  struct Value {
    uint64_t value = 0;            // Events; for clocks nanoseconds.
    std::optional<uint64_t> id;    // With kReadId.
    std::optional<uint64_t> lost;  // With kReadLost: samples that the kernel dropped.
  };

  // Parses the values at the start of `words`, from read(2) or a record. Returns nullopt if they exceed `words`.
  static std::optional<ReadValues> Parse(Words words, uint64_t read_format) noexcept;

  // Returns the number of values: the events of the group, 1 without kReadGroup.
  size_t size() const noexcept { return size_; }
  // The times that the event, or the group's leader, was enabled and on the PMU; nullopt if they were not asked for.
  std::optional<uint64_t> time_enabled_ns() const noexcept;
  std::optional<uint64_t> time_running_ns() const noexcept;
  // Returns value i; with kReadGroup value 0 is the leader's. Requires i < size().
  Value operator[](size_t i) const noexcept;
  // Returns the number of words that the values take.
  size_t words() const noexcept { return words_.size(); }

 private:
  Words words_;
  uint64_t format_ = 0;
  size_t size_ = 0;
};

// User registers (attr.sample_regs_user) or interrupt registers (sample_regs_intr). A view: valid as long as the
// record. Without registers, as for a kernel thread, abi is 0.
struct Registers {
  uint64_t abi = 0;   // PERF_SAMPLE_REGS_ABI_*: 1 is 32-bit, 2 is 64-bit; 0 means no registers.
  uint64_t mask = 0;  // Bit i: register i of the machine's asm/perf_regs.h is included.
  Words values;       // The values of the included registers, in ascending order of their numbers.

  // Returns register `reg`, or nullopt if it is not included.
  std::optional<uint64_t> operator[](unsigned reg) const noexcept {
    if (reg > 63 || (mask >> reg & 1) == 0 || values.empty()) return std::nullopt;
    return values[static_cast<size_t>(std::popcount(mask & ((uint64_t{1} << reg) - 1)))];
  }
};

// A copy of the stack from the stack pointer upwards. A view: valid as long as the record.
struct UserStack {
  Bytes bytes;            // The bytes that were copied.
  uint64_t reserved = 0;  // Bytes reserved for it in the record.
};

namespace detail {
// The link register's number in user registers: arch/arm64/include/uapi/asm/perf_regs.h.
#if defined(__aarch64__)
inline constexpr std::optional<unsigned> kLinkRegister = 30;
#else
inline constexpr std::optional<unsigned> kLinkRegister;
#endif

// The result of BasicSample::leaf_caller for the user part `pcs` of the chain and the value `link` of the link
// register.
std::optional<uint64_t> LeafCaller(Words pcs, uint64_t link) noexcept;
}  // namespace detail

// A thread: its process and its own number, in the pid namespace of the program that opened the event.
struct TaskId {
  uint32_t pid = 0, tid = 0;
};

// The positions of fields in the records of events with the same attr bits. A value without pointers, computed once.
// Thread-safe to read.
class SampleLayout {
 public:
  constexpr SampleLayout() = default;
  constexpr explicit SampleLayout(const AttrBits& bits) : bits_(bits) {
    for (size_t i = 0; i < kFieldCount; ++i) {
      if ((bits.sample_type & detail::kFields[i].bits) == 0) continue;
      fields_ |= uint32_t{1} << i;
      if (i < kEarly) {
        at_[i] = early_bytes_, early_bytes_ += 8, min_bytes_ += 8;
      } else {
        steps_[late_count_] = detail::StepOf(static_cast<Field>(i), bits);
        min_bytes_ += steps_[late_count_++].min_bytes;
      }
    }
    if (!bits.sample_id_all) return;
    for (size_t i = detail::kTrailer.size(); i-- > 0;) {
      if (has(detail::kTrailer[i])) back_[static_cast<size_t>(detail::kTrailer[i])] = trailer_bytes_ += 8;
    }
  }

  constexpr const AttrBits& bits() const { return bits_; }
  constexpr bool has(Field field) const { return (fields_ >> static_cast<unsigned>(field) & 1) != 0; }

  // Returns the time of a record of any type, in nanoseconds of the event's clock; nullopt if it has none.
  std::optional<uint64_t> TimeOf(const RawRecord& record) const noexcept { return WordOf(record, Field::kTime); }
  // Returns the id of the event that wrote a record, from kSampleIdentifier or kSampleId; nullopt if it has neither.
  std::optional<uint64_t> IdOf(const RawRecord& record) const noexcept {
    return WordOf(record, has(Field::kIdentifier) ? Field::kIdentifier : Field::kId);
  }

  // For fields before kRead: the offset in a sample's body, and the size of all of them, in bytes.
  constexpr uint16_t early_offset(Field field) const { return at_[static_cast<size_t>(field)]; }
  constexpr uint16_t early_bytes() const { return early_bytes_; }
  // Returns the minimum size of a sample's body, in bytes.
  constexpr uint16_t min_bytes() const { return min_bytes_; }
  // Returns the set of fields from kRead on: bit i is Field i.
  constexpr uint32_t late_fields() const { return fields_ >> kEarly << kEarly; }
  // Returns the bytes from the start of a field of the trailer to the end of the record; 0 if the trailer lacks the
  // field.
  constexpr uint16_t trailer_offset(Field field) const { return back_[static_cast<size_t>(field)]; }
  // Returns the size of the trailer in bytes.
  constexpr uint16_t trailer_bytes() const { return trailer_bytes_; }
  // Returns the fields from kRead on, in the order in which they are written.
  constexpr std::span<const detail::Step> late_steps() const { return {steps_.data(), late_count_}; }

 private:
  static constexpr size_t kEarly = static_cast<size_t>(Field::kRead);
  std::optional<uint64_t> WordOf(const RawRecord& record, Field field) const noexcept;

  AttrBits bits_;
  uint32_t fields_ = 0;  // Bit i: Field i.
  uint16_t early_bytes_ = 0, min_bytes_ = 0;
  uint16_t trailer_bytes_ = 0;
  uint16_t late_count_ = 0;
  std::array<detail::Step, kFieldCount - kEarly> steps_{};
  std::array<uint16_t, kEarly> at_{};
  std::array<uint16_t, kEarly> back_{};
};

namespace detail {

// Two sources of a BasicSample's layout. LateIndex is the index at which the sample keeps the offset of a field from
// kRead on. RuntimeLayout has room for all such fields, FixedLayout only for those that the layout has.
struct RuntimeLayout {
  static constexpr size_t kLate = kFieldCount - kFirstLate;
  const SampleLayout* layout = nullptr;
  const SampleLayout& get() const noexcept { return *layout; }
  static constexpr size_t LateIndex(Field field) noexcept { return static_cast<size_t>(field) - kFirstLate; }
};
template <AttrBits kBits>
struct FixedLayout {
  static constexpr SampleLayout kLayout{kBits};
  static constexpr size_t kLate = std::popcount(kLayout.late_fields());
  static constexpr const SampleLayout& get() noexcept { return kLayout; }
  static constexpr size_t LateIndex(Field field) noexcept {
    return std::popcount(kLayout.late_fields() & ((uint32_t{1} << static_cast<unsigned>(field)) - 1));
  }
};

}  // namespace detail

// A sample. A view: valid as long as the record and, for a Sample, the layout. Fields that the layout lacks are nullopt
// or empty. Parse checks all counts against the size of the record. Thread-safe and async-signal-safe to read; does not
// allocate or throw.
template <class Layout>
class BasicSample {
 public:
  // Returns nullopt if `record` is not a sample, or if a field of this layout exceeds it.
  static std::optional<BasicSample> Parse(const RawRecord& record, const SampleLayout& layout) noexcept requires
      std::is_same_v<Layout, detail::RuntimeLayout> {
    return ParseAs(record, Layout{&layout});
  }
  static void Parse(const RawRecord& record, SampleLayout&& layout) = delete;  // The layout must outlive the sample.
  static std::optional<BasicSample> Parse(const RawRecord& record) noexcept
      requires(!std::is_same_v<Layout, detail::RuntimeLayout>) {
    return ParseAs(record, Layout{});
  }

  CpuMode cpu_mode() const noexcept { return static_cast<CpuMode>(misc_ & kMiscCpuMode); }
  // Returns true if ip() is exactly the event's, without skid.
  bool exact_ip() const noexcept { return (misc_ & kMiscExactIp) != 0; }

  std::optional<uint64_t> identifier() const noexcept { return Early(Field::kIdentifier); }
  std::optional<uint64_t> ip() const noexcept { return Early(Field::kIp); }
  std::optional<TaskId> task() const noexcept {
    const std::optional<uint64_t> word = Early(Field::kTid);
    if (!word) return std::nullopt;
    return TaskId{static_cast<uint32_t>(*word), static_cast<uint32_t>(*word >> 32)};
  }
  std::optional<uint64_t> time_ns() const noexcept { return Early(Field::kTime); }
  std::optional<uint64_t> address() const noexcept { return Early(Field::kAddr); }
  std::optional<uint64_t> id() const noexcept { return Early(Field::kId); }
  std::optional<uint64_t> stream_id() const noexcept { return Early(Field::kStreamId); }
  std::optional<uint32_t> cpu() const noexcept {
    const std::optional<uint64_t> word = Early(Field::kCpu);
    return word ? std::optional(static_cast<uint32_t>(*word)) : std::nullopt;
  }
  // Returns the events that the sample stands for; for clock events nanoseconds.
  std::optional<uint64_t> period() const noexcept { return Early(Field::kPeriod); }

  std::optional<ReadValues> read() const noexcept;
  CallChain chain() const noexcept;
  // arm64, with CallStack::FramePointers: returns the return address that is missing between the first and the second
  // pc of the chain's user part. Returns nullopt if the chain has that caller, and on other machines. The kernel
  // follows frame records, but a leaf function has none, nor has any function in its prologue or epilogue: there, only
  // the link register has the caller.
  //
  // If the address lies in the function of the first pc, it is not a caller. Then the function has a frame record, and
  // the link register still has the return address of its last call. To detect this, compare the functions' names.
  std::optional<uint64_t> leaf_caller() const noexcept;
  // Returns a tracepoint's fields, which TracepointFormat reads, with padding; empty if there are none.
  Bytes raw() const noexcept;
  BranchStack branches() const noexcept;
  Registers user_registers() const noexcept { return RegistersAt(Field::kRegsUser, layout().bits().regs_user); }
  Registers interrupt_registers() const noexcept { return RegistersAt(Field::kRegsIntr, layout().bits().regs_intr); }
  UserStack user_stack() const noexcept;
  // With kSampleWeightStruct three numbers, u32, u16 and u16 from the lowest bit on: WeightParts of data_source.h.
  std::optional<uint64_t> weight() const noexcept { return Late(Field::kWeight); }
  // DataSource of data_source.h reads it.
  std::optional<uint64_t> data_source() const noexcept { return Late(Field::kDataSrc); }
  std::optional<uint64_t> transaction() const noexcept { return Late(Field::kTransaction); }
  std::optional<uint64_t> physical_address() const noexcept { return Late(Field::kPhysAddr); }
  std::optional<uint64_t> cgroup() const noexcept { return Late(Field::kCgroup); }
  std::optional<uint64_t> data_page_bytes() const noexcept { return Late(Field::kDataPageSize); }
  std::optional<uint64_t> code_page_bytes() const noexcept { return Late(Field::kCodePageSize); }
  Bytes aux() const noexcept;
  // Returns the bytes after the last known field: padding, or fields of a newer kernel.
  Bytes rest() const noexcept { return {body_ + end_, static_cast<size_t>(size_ - end_)}; }

  const SampleLayout& layout() const noexcept { return layout_.get(); }

 private:
  struct Key {};

 public:
  // Only for Parse, which constructs the sample inside of its result.
  BasicSample(Key, const RawRecord& record, Layout layout) noexcept
      : body_(record.data + RawRecord::kHeaderSize),
        layout_(layout),
        misc_(record.misc),
        size_(static_cast<uint16_t>(record.size - RawRecord::kHeaderSize)),
        end_(layout.get().early_bytes()) {}

 private:
  static std::optional<BasicSample> ParseAs(const RawRecord& record, Layout layout) noexcept;
  // Find the offsets of the fields from kRead on. `spare`: bytes of the record beyond the layout's min_bytes.
  bool FindLate(uint32_t spare) noexcept;
  template <size_t... kIndex>
  bool FindFixed(uint32_t spare, std::index_sequence<kIndex...>) noexcept;

  std::optional<uint64_t> Early(Field field) const noexcept {
    if (!layout().has(field)) return std::nullopt;
    return detail::Load<uint64_t>(body_ + layout().early_offset(field));
  }
  const std::byte* At(Field field) const noexcept { return body_ + late_[Layout::LateIndex(field)]; }
  std::optional<uint64_t> Late(Field field) const noexcept {
    if (!layout().has(field)) return std::nullopt;
    return detail::Load<uint64_t>(At(field));
  }
  Registers RegistersAt(Field field, uint64_t mask) const noexcept;

  const std::byte* body_;
  [[no_unique_address]] Layout layout_;
  uint16_t misc_, size_, end_;
  std::array<uint16_t, Layout::kLate> late_;  // Offsets in the body; unspecified for fields that the layout lacks.
};

using Sample = BasicSample<detail::RuntimeLayout>;

// A sample of an event that was opened with exactly these bits. Not an alias, because gcc 12 crashes on such aliases in
// templates.
template <AttrBits kBits>
class FixedSample : public BasicSample<detail::FixedLayout<kBits>> {};

// kRead: the values of an inherited event when its thread ended.
struct ReadRecord {
  uint32_t pid = 0, tid = 0;
  ReadValues values;
  SampleId who;

  static std::optional<ReadRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kCallchainDeferred: the user part of those earlier samples of this thread whose chains end with this cookie.
struct CallchainDeferredRecord {
  uint64_t cookie = 0;
  CallChain chain;
  SampleId who;

  static std::optional<CallchainDeferredRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// Parses `record` and calls `visit` with the result: a Sample, or a struct of this header or record.h. If `visit` does
// not accept that, or the type is newer than this library, calls it with the RawRecord; if it does not accept that
// either, does nothing. Returns false, without a call, if `visit` accepts the struct but the record can't be parsed.
template <class Visitor>
bool Dispatch(const RawRecord& record, const SampleLayout& layout, Visitor&& visit);

// A visitor made of lambdas: Dispatch(record, layout, Overloaded{[](const Sample&) {…}, [](const LostRecord&) {…}}).
// Records that no lambda accepts are ignored without being parsed, so a catch-all [](const auto&) {} is not needed.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace perfkit

#include "perfkit/detail/sample_inline.h"

// The records that the kernel writes into a ring: their types, the attr bits that decide their layout, and a plain
// struct for each type. sample.h has those of samples, kRead and kCallchainDeferred, and Dispatch over all types.
//
// Constants and layouts are those of include/uapi/linux/perf_event.h as of Linux 6.19. They are repeated here because
// the headers of a distribution are older than the kernels that it runs on. Records of newer types are passed on as
// RawRecord.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "perfkit/ring_reader.h"

namespace perfkit {

// The values of RawRecord::type. Any other value is the type of a record that is newer than this list.
enum class RecordType : uint32_t {
  kMmap = 1,
  kLost = 2,
  kComm = 3,
  kExit = 4,
  kThrottle = 5,
  kUnthrottle = 6,
  kFork = 7,
  kRead = 8,
  kSample = 9,
  kMmap2 = 10,
  kAux = 11,
  kItraceStart = 12,
  kLostSamples = 13,
  kSwitch = 14,
  kSwitchCpuWide = 15,
  kNamespaces = 16,
  kKsymbol = 17,
  kBpfEvent = 18,
  kCgroup = 19,
  kTextPoke = 20,
  kAuxOutputHwId = 21,
  kCallchainDeferred = 22,
};
// Returns "MMAP", "LOST", …; "" for an unknown type.
std::string_view RecordTypeName(uint32_t type) noexcept;

// Masks for RawRecord::misc. The low three bits are a CpuMode; the meaning of the others depends on the type.
inline constexpr uint16_t kMiscCpuMode = 7;
inline constexpr uint16_t kMiscMmapData = 1 << 13;   // kMmap, kMmap2: the mapping is not executable.
inline constexpr uint16_t kMiscCommExec = 1 << 13;   // kComm: the thread got its name by exec.
inline constexpr uint16_t kMiscSwitchOut = 1 << 13;  // kSwitch, kSwitchCpuWide: the thread leaves its CPU.
inline constexpr uint16_t kMiscExactIp = 1 << 14;    // kSample: the ip is exactly the event's, without skid.
// kSwitch, kSwitchCpuWide, with kMiscSwitchOut: it was still runnable.
inline constexpr uint16_t kMiscSwitchPreempted = 1 << 14;
inline constexpr uint16_t kMiscMmapBuildId = 1 << 14;  // kMmap2: has a build-id instead of device and inode.
enum class CpuMode : uint8_t { kUnknown, kKernel, kUser, kHypervisor, kGuestKernel, kGuestUser };

// Bits of perf_event_attr.sample_type: the fields that samples have.
enum SampleBit : uint64_t {
  kSampleIp = 1 << 0,
  kSampleTid = 1 << 1,
  kSampleTime = 1 << 2,
  kSampleAddr = 1 << 3,
  kSampleRead = 1 << 4,
  kSampleCallchain = 1 << 5,
  kSampleId = 1 << 6,
  kSampleCpu = 1 << 7,
  kSamplePeriod = 1 << 8,
  kSampleStreamId = 1 << 9,
  kSampleRaw = 1 << 10,
  kSampleBranchStack = 1 << 11,
  kSampleRegsUser = 1 << 12,
  kSampleStackUser = 1 << 13,
  kSampleWeight = 1 << 14,
  kSampleDataSrc = 1 << 15,
  kSampleIdentifier = 1 << 16,
  kSampleTransaction = 1 << 17,
  kSampleRegsIntr = 1 << 18,
  kSamplePhysAddr = 1 << 19,
  kSampleAux = 1 << 20,
  kSampleCgroup = 1 << 21,
  kSampleDataPageSize = 1 << 22,
  kSampleCodePageSize = 1 << 23,
  kSampleWeightStruct = 1 << 24,
};

// Bits of perf_event_attr.read_format: what read(2) and Field::kRead return beside the values.
enum ReadBit : uint64_t {
  kReadTimeEnabled = 1,
  kReadTimeRunning = 2,
  kReadId = 4,
  kReadGroup = 8,
  kReadLost = 16,
};

// The bits of perf_event_attr.branch_sample_type that change the layout of a sample.
inline constexpr uint64_t kBranchHwIndex = 1 << 17;
inline constexpr uint64_t kBranchCounters = 1 << 19;

// The members of a perf_event_attr that decide the layout of its records. Usable as a template argument.
struct AttrBits {
  uint64_t sample_type = 0;  // SampleBits.
  uint64_t read_format = 0;  // ReadBits.
  uint64_t branch_sample_type = 0;
  uint64_t regs_user = 0;      // sample_regs_user: bit i is register i of asm/perf_regs.h.
  uint64_t regs_intr = 0;      // sample_regs_intr: likewise.
  bool sample_id_all = false;  // Records other than samples end with a SampleId.

  friend constexpr bool operator==(const AttrBits&, const AttrBits&) = default;
};

// The fields of a sample, in the order in which the kernel writes them. The fields up to kPeriod are one word each, at
// offsets that depend on the layout only; offsets of later fields depend on the record, too.
enum class Field : uint8_t {
  kIdentifier,
  kIp,
  kTid,
  kTime,
  kAddr,
  kId,
  kStreamId,
  kCpu,
  kPeriod,
  kRead,
  kCallchain,
  kRaw,
  kBranchStack,
  kRegsUser,
  kStackUser,
  kWeight,
  kDataSrc,
  kTransaction,
  kRegsIntr,
  kPhysAddr,
  kCgroup,
  kDataPageSize,
  kCodePageSize,
  kAux,
};
inline constexpr size_t kFieldCount = 24;

class SampleLayout;  // sample.h

// A view of `size()` 64-bit words of any alignment, e.g. the pcs of a call chain. Valid as long as the record that it
// is from. Thread-safe to read; does not allocate or throw. Indices are not checked: the behaviour is undefined if they
// exceed size().
class Words {
 public:
  class Iterator {
   public:
    using value_type = uint64_t;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    uint64_t operator*() const noexcept { return detail::Load<uint64_t>(at_); }
    Iterator& operator++() noexcept { return at_ += 8, *this; }
    Iterator operator++(int) noexcept { return Iterator(std::exchange(at_, at_ + 8)); }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const std::byte* at_ = nullptr;
  };

  Words() = default;
  // Views `count` words that start at `data`. Requires 8 * count readable bytes, which must outlive the view.
  Words(const std::byte* data, size_t count) noexcept : data_(data), size_(count) {}

  // Returns the number of words.
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  // Returns word i. Requires i < size().
  uint64_t operator[](size_t i) const noexcept { return detail::Load<uint64_t>(data_ + 8 * i); }
  // Returns the `count` words from word `from` on. Requires from + count <= size().
  Words subspan(size_t from, size_t count) const noexcept { return {data_ + 8 * from, count}; }
  Bytes bytes() const noexcept { return {data_, 8 * size_}; }
  Iterator begin() const noexcept { return Iterator(data_); }
  Iterator end() const noexcept { return Iterator(data_ + 8 * size_); }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The trailer of all records except samples, with attr.sample_id_all. Fields that the attr's sample_type does not ask
// for are nullopt.
struct SampleId {
  std::optional<uint32_t> pid, tid;
  std::optional<uint64_t> time_ns;
  std::optional<uint64_t> id, stream_id, identifier;
  std::optional<uint32_t> cpu;
};

// Common to all structs below: Parse returns nullopt for another type, and if the record is too short, a count exceeds
// it, or a text has no terminating NUL. Parse is thread-safe and async-signal-safe, and does not allocate. Texts and
// Bytes are views, valid as long as the record; an empty text is never null. `who` is the record's trailer, and is
// empty without sample_id_all.

// kMmap, kMmap2: a new mapping. The fields from `protection` to `build_id` require `mmap2`.
struct MmapRecord {
  uint32_t pid = 0, tid = 0;
  uint64_t address = 0, length = 0, file_offset = 0;
  std::string_view name;                        // A path, "//anon", "[vdso]", ….
  bool mmap2 = false;                           // The record is a kMmap2.
  uint32_t protection = 0, flags = 0;           // PROT_* and MAP_*.
  uint32_t device_major = 0, device_minor = 0;  // 0 if the record has a build-id.
  uint64_t inode = 0, inode_generation = 0;     // 0 if the record has a build-id.
  Bytes build_id;                               // At most 20 bytes; empty if the record has none.
  bool data = false;                            // The mapping is not executable.
  SampleId who;

  static std::optional<MmapRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kLost: the kernel dropped `lost` records because the ring was full. The kernel writes it before the next record that
// fits, with the id of that record's event; the lost records may be of other events in the ring. For exact counts for
// each event, use kReadLost.
struct LostRecord {
  uint64_t id = 0, lost = 0;
  SampleId who;

  static std::optional<LostRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kLostSamples: the hardware dropped `lost` samples.
struct LostSamplesRecord {
  uint64_t lost = 0;
  SampleId who;

  static std::optional<LostSamplesRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kComm: a thread got a new name.
struct CommRecord {
  uint32_t pid = 0, tid = 0;
  std::string_view name;
  bool exec = false;  // By exec, not e.g. by prctl.
  SampleId who;

  static std::optional<CommRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kFork, kExit: a thread starts or ends. With kFork, parent_pid and parent_tid are those of the thread that created it;
// if pid differs from parent_pid, it starts a process. With kExit, both are the pid of the parent process
// (perf_event_task_output in kernel/events/core.c).
struct TaskRecord {
  uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  uint64_t time_ns = 0;  // By the event's clock.
  SampleId who;
};
struct ForkRecord : TaskRecord {
  static std::optional<ForkRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};
struct ExitRecord : TaskRecord {
  static std::optional<ExitRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kThrottle, kUnthrottle: the kernel stopped an event because it came too often (`throttled`), or restarted it at the
// next tick.
struct ThrottleRecord {
  bool throttled = false;
  uint64_t time_ns = 0;  // By the event's clock.
  uint64_t id = 0, stream_id = 0;
  SampleId who;

  static std::optional<ThrottleRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kSwitch, kSwitchCpuWide: a thread leaves its CPU (`out`) or returns to one.
struct SwitchRecord {
  bool out = false;
  bool preempted = false;             // With `out`: it was still runnable.
  std::optional<uint32_t> other_pid;  // kSwitchCpuWide: the next thread if `out`, else the previous one.
  std::optional<uint32_t> other_tid;
  SampleId who;

  static std::optional<SwitchRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kAux: `size` bytes of data were added at `offset` of the event's AUX area.
struct AuxRecord {
  uint64_t offset = 0, size = 0, flags = 0;  // In bytes; PERF_AUX_FLAG_*.
  SampleId who;

  static std::optional<AuxRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kItraceStart: an instruction trace of this thread begins.
struct ItraceStartRecord {
  uint32_t pid = 0, tid = 0;
  SampleId who;

  static std::optional<ItraceStartRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kAuxOutputHwId: the number by which the hardware names this event in AUX data.
struct AuxOutputHwIdRecord {
  uint64_t hw_id = 0;
  SampleId who;

  static std::optional<AuxOutputHwIdRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kNamespaces: the namespaces of a thread, written when it starts and when it changes them. Link i is the device and
// inode of /proc/PID/ns for namespace i, in the order of NET_NS_INDEX, … (include/uapi/linux/perf_event.h).
struct NamespacesRecord {
  struct Link {
    uint64_t device, inode;
  };
  uint32_t pid = 0, tid = 0;
  Bytes links;
  SampleId who;

  // Returns the number of namespaces.
  size_t size() const noexcept { return links.size() / sizeof(Link); }
  // Returns link i. Requires i < size().
  Link operator[](size_t i) const noexcept { return detail::Load<Link>(links.data() + i * sizeof(Link)); }

  static std::optional<NamespacesRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kKsymbol: the kernel registered a named range of its own code that is not in its image, or unregistered it.
struct KsymbolRecord {
  // PERF_RECORD_KSYMBOL_TYPE_*. Any other value is newer than this list.
  enum class Type : uint16_t {
    kUnknown = 0,
    kBpf = 1,        // Code of BPF: compiled programs, and trampolines.
    kOutOfLine = 2,  // Code that the kernel generated elsewhere: trampolines of ftrace, copies of probed instructions.
  };
  static constexpr uint16_t kUnregister = 1 << 0;  // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER.

  uint64_t address = 0;
  uint32_t length = 0;  // In bytes.
  Type type = Type::kUnknown;
  uint16_t flags = 0;  // kUnregister, or bits that are newer than this list.
  std::string_view name;
  SampleId who;

  // Returns true if the range was unregistered, false if it was registered.
  bool unregistered() const noexcept { return (flags & kUnregister) != 0; }

  static std::optional<KsymbolRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kBpfEvent: a BPF program was loaded or unloaded.
struct BpfEventRecord {
  // PERF_BPF_EVENT_*. Any other value is newer than this list.
  enum class Type : uint16_t { kUnknown = 0, kProgramLoad = 1, kProgramUnload = 2 };

  Type type = Type::kUnknown;
  uint16_t flags = 0;  // The kernel defines none, as of Linux 6.19: always 0.
  uint32_t program_id = 0;
  Bytes tag;  // 8 bytes: a hash of the program's instructions (bpf_prog_info.tag).
  SampleId who;

  static std::optional<BpfEventRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kCgroup: the path of a cgroup. Samples refer to the cgroup by its number (Sample::cgroup).
struct CgroupRecord {
  uint64_t cgroup = 0;
  std::string_view path;
  SampleId who;

  static std::optional<CgroupRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kTextPoke: the kernel changed its code at `address` in place.
struct TextPokeRecord {
  uint64_t address = 0;
  Bytes old_bytes, new_bytes;
  SampleId who;

  static std::optional<TextPokeRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

}  // namespace perfkit

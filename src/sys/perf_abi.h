// The perf ABI as of Linux 6.18: perf_event_open's attr, its constants and its ioctls, as perfkit's own declarations.
//
// Distributions ship uapi headers that are older than the kernels they run, so <linux/perf_event.h> is not used.
// tests/sys/perf_abi_test.cc compares each layout and value with the header of the build machine. Source:
// include/uapi/linux/perf_event.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perfkit::sys {

// perf_event_attr.type
enum PerfType : uint32_t {
  kTypeHardware = 0,
  kTypeSoftware = 1,
  kTypeTracepoint = 2,
  kTypeHwCache = 3,
  kTypeRaw = 4,
  kTypeBreakpoint = 5,
};

// perf_event_attr.config of kTypeSoftware, as far as other rooms tell them apart. src/event/event_table.cc has all.
enum SoftwareConfig : uint64_t {
  kSwCpuClock = 0,
  kSwTaskClock = 1,
  kSwPageFaults = 2,
  kSwContextSwitches = 3,
  kSwCpuMigrations = 4,
  kSwPageFaultsMin = 5,
  kSwPageFaultsMaj = 6,
  kSwDummy = 9,
  kSwCgroupSwitches = 11,
};

// perf_event_attr.read_format
enum ReadFormat : uint64_t {
  kFormatTotalTimeEnabled = 1,
  kFormatTotalTimeRunning = 2,
  kFormatId = 4,
  kFormatGroup = 8,
  kFormatLost = 16,
};

// perf_event_attr.sample_type: the bits that counting uses.
enum SampleBit : uint64_t {
  kSampleIp = 1 << 0,
  kSampleTid = 1 << 1,
  kSampleTime = 1 << 2,
  kSampleAddr = 1 << 3,
  kSampleRead = 1 << 4,
  kSampleCpu = 1 << 7,
  kSampleBranchStack = 1 << 11,
};

// perf_event_attr.branch_sample_type
enum BranchBit : uint64_t { kBranchUser = 1 << 0, kBranchAny = 1 << 3 };

// perf_event_header.type and .misc: the records that counting reads.
constexpr uint32_t kRecordSample = 9;
constexpr uint32_t kRecordSwitch = 14;
constexpr uint16_t kMiscSwitchOut = 1 << 13;
constexpr uint16_t kMiscSwitchOutPreempt = 1 << 14;

// perf_event_open's flags.
constexpr unsigned long kOpenFdCloexec = 8;

// ioctl requests on an event. (_IO('$', n): no direction, no size.)
constexpr unsigned long kIocEnable = 0x2400;
constexpr unsigned long kIocDisable = 0x2401;
constexpr unsigned long kIocReset = 0x2403;
constexpr unsigned long kIocSetOutput = 0x2405;  // The argument is the descriptor of the ring owner.
// Requests with a direction and the size of a word or pointer: _IOW('$', n), and _IOR('$', 7).
constexpr unsigned long kIocPeriod = 0x40082404;
constexpr unsigned long kIocSetFilter = 0x40082406;
constexpr unsigned long kIocId = 0x80082407;
constexpr unsigned long kIocPauseOutput = 0x40042409;

// HW_BREAKPOINT_*, for perf_event_attr.bp_type.
enum BreakpointKind : uint32_t { kBreakRead = 1, kBreakWrite = 2, kBreakExecute = 4 };

// struct perf_event_attr. Zero it, fill in the fields, and let AttrSize choose `size`.
struct PerfEventAttr {
  uint32_t type;
  uint32_t size;
  uint64_t config;
  uint64_t sample_period_or_freq;
  uint64_t sample_type;
  uint64_t read_format;
  uint64_t disabled : 1, inherit : 1, pinned : 1, exclusive : 1, exclude_user : 1, exclude_kernel : 1, exclude_hv : 1,
      exclude_idle : 1, mmap : 1, comm : 1, freq : 1, inherit_stat : 1, enable_on_exec : 1, task : 1, watermark : 1,
      precise_ip : 2, mmap_data : 1, sample_id_all : 1, exclude_host : 1, exclude_guest : 1,
      exclude_callchain_kernel : 1, exclude_callchain_user : 1, mmap2 : 1, comm_exec : 1, use_clockid : 1,
      context_switch : 1, write_backward : 1, namespaces : 1, ksymbol : 1, bpf_event : 1, aux_output : 1, cgroup : 1,
      text_poke : 1, build_id : 1, inherit_thread : 1, remove_on_exec : 1, sigtrap : 1, defer_callchain : 1,
      defer_output : 1, reserved_1 : 24;
  uint32_t wakeup_events_or_watermark;
  uint32_t bp_type;
  uint64_t config1;  // Also bp_addr, kprobe_func, uprobe_path.
  uint64_t config2;  // Also bp_len, kprobe_addr, probe_offset.
  uint64_t branch_sample_type;
  uint64_t sample_regs_user;
  uint32_t sample_stack_user;
  int32_t clockid;
  uint64_t sample_regs_intr;
  uint32_t aux_watermark;
  uint16_t sample_max_stack;
  uint16_t reserved_2;
  uint32_t aux_sample_size;
  uint32_t aux_action;
  uint64_t sig_data;
  uint64_t config3;
};
static_assert(sizeof(PerfEventAttr) == 136);
static_assert(offsetof(PerfEventAttr, config1) == 56);
static_assert(offsetof(PerfEventAttr, clockid) == 92);
static_assert(offsetof(PerfEventAttr, sig_data) == 120);

// The part of siginfo_t that describes a sampled event's SIGTRAP (attr.sigtrap), on 64-bit machines. Source:
// include/uapi/asm-generic/siginfo.h, _sigfault._perf.
struct SampleSignal {
  int32_t signal, error, code, padding;
  uint64_t address;
  uint64_t data;  // attr.sig_data
  uint32_t type;  // attr.type
  uint32_t flags;
};
static_assert(offsetof(SampleSignal, data) == 24);
constexpr int kTrapPerf = 6;                 // si_code
constexpr uint32_t kTrapPerfAsync = 1 << 0;  // SIGTRAP was blocked when the sample was taken.

// Returns the smallest published size of attr (PERF_ATTR_SIZE_VER0..8) that holds each non-zero byte of `attr`. The
// kernel refuses an unknown size (E2BIG) only if the excess is not zero, but some sandboxes always refuse it. The
// smallest size works on all.
uint32_t AttrSize(const PerfEventAttr& attr);

}  // namespace perfkit::sys

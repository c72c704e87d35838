// Our copy of the perf ABI against the build machine's <linux/perf_event.h>: every layout and every value.
#include "src/sys/perf_abi.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "perfkit/detail/user_page.h"
#include "perfkit/event_type.h"

namespace perfkit::sys {
namespace {

// Enumerators of different enums are compared as numbers.
constexpr bool Same(uint64_t ours, uint64_t theirs) { return ours == theirs; }

static_assert(Same(kTypeHardware, PERF_TYPE_HARDWARE) && Same(kTypeSoftware, PERF_TYPE_SOFTWARE));
static_assert(Same(kTypeTracepoint, PERF_TYPE_TRACEPOINT) && Same(kTypeHwCache, PERF_TYPE_HW_CACHE));
static_assert(Same(kTypeRaw, PERF_TYPE_RAW) && Same(kTypeBreakpoint, PERF_TYPE_BREAKPOINT));
static_assert(Same(kSwCpuClock, PERF_COUNT_SW_CPU_CLOCK) && Same(kSwTaskClock, PERF_COUNT_SW_TASK_CLOCK));
static_assert(Same(kSwPageFaults, PERF_COUNT_SW_PAGE_FAULTS));
static_assert(Same(kSwContextSwitches, PERF_COUNT_SW_CONTEXT_SWITCHES));
static_assert(Same(kSwCpuMigrations, PERF_COUNT_SW_CPU_MIGRATIONS));
static_assert(Same(kSwPageFaultsMin, PERF_COUNT_SW_PAGE_FAULTS_MIN));
static_assert(Same(kSwPageFaultsMaj, PERF_COUNT_SW_PAGE_FAULTS_MAJ));
static_assert(Same(kSwDummy, PERF_COUNT_SW_DUMMY));
static_assert(Same(kFormatTotalTimeEnabled, PERF_FORMAT_TOTAL_TIME_ENABLED));
static_assert(Same(kFormatTotalTimeRunning, PERF_FORMAT_TOTAL_TIME_RUNNING));
static_assert(Same(kFormatId, PERF_FORMAT_ID) && Same(kFormatGroup, PERF_FORMAT_GROUP));
static_assert(Same(kSampleIp, PERF_SAMPLE_IP) && Same(kSampleTid, PERF_SAMPLE_TID));
static_assert(Same(kSampleTime, PERF_SAMPLE_TIME) && Same(kSampleAddr, PERF_SAMPLE_ADDR));
static_assert(Same(kSampleCpu, PERF_SAMPLE_CPU) && Same(kSampleBranchStack, PERF_SAMPLE_BRANCH_STACK));
static_assert(Same(kBranchUser, PERF_SAMPLE_BRANCH_USER) && Same(kBranchAny, PERF_SAMPLE_BRANCH_ANY));
static_assert(Same(kRecordSample, PERF_RECORD_SAMPLE) && Same(kRecordSwitch, PERF_RECORD_SWITCH));
static_assert(Same(kMiscSwitchOut, PERF_RECORD_MISC_SWITCH_OUT));
static_assert(Same(kMiscSwitchOutPreempt, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
static_assert(Same(kOpenFdCloexec, PERF_FLAG_FD_CLOEXEC));
static_assert(Same(kIocEnable, PERF_EVENT_IOC_ENABLE) && Same(kIocDisable, PERF_EVENT_IOC_DISABLE));
static_assert(Same(kIocReset, PERF_EVENT_IOC_RESET) && Same(kIocSetOutput, PERF_EVENT_IOC_SET_OUTPUT));
static_assert(Same(kIocPeriod, PERF_EVENT_IOC_PERIOD) && Same(kIocSetFilter, PERF_EVENT_IOC_SET_FILTER));
static_assert(Same(kIocId, PERF_EVENT_IOC_ID) && Same(kIocPauseOutput, PERF_EVENT_IOC_PAUSE_OUTPUT));
static_assert(Same(kBreakRead, HW_BREAKPOINT_R) && Same(kBreakWrite, HW_BREAKPOINT_W));
static_assert(Same(kBreakExecute, HW_BREAKPOINT_X));

static_assert(offsetof(PerfEventAttr, type) == offsetof(perf_event_attr, type));
static_assert(offsetof(PerfEventAttr, size) == offsetof(perf_event_attr, size));
static_assert(offsetof(PerfEventAttr, config) == offsetof(perf_event_attr, config));
static_assert(offsetof(PerfEventAttr, sample_period_or_freq) == offsetof(perf_event_attr, sample_period));
static_assert(offsetof(PerfEventAttr, sample_type) == offsetof(perf_event_attr, sample_type));
static_assert(offsetof(PerfEventAttr, read_format) == offsetof(perf_event_attr, read_format));
static_assert(offsetof(PerfEventAttr, wakeup_events_or_watermark) == offsetof(perf_event_attr, wakeup_events));
static_assert(offsetof(PerfEventAttr, bp_type) == offsetof(perf_event_attr, bp_type));
static_assert(offsetof(PerfEventAttr, config1) == offsetof(perf_event_attr, bp_addr));
static_assert(offsetof(PerfEventAttr, config2) == offsetof(perf_event_attr, bp_len));
static_assert(offsetof(PerfEventAttr, branch_sample_type) == offsetof(perf_event_attr, branch_sample_type));
static_assert(offsetof(PerfEventAttr, sample_regs_user) == offsetof(perf_event_attr, sample_regs_user));
static_assert(offsetof(PerfEventAttr, sample_stack_user) == offsetof(perf_event_attr, sample_stack_user));
static_assert(offsetof(PerfEventAttr, clockid) == offsetof(perf_event_attr, clockid));
static_assert(offsetof(PerfEventAttr, sample_regs_intr) == offsetof(perf_event_attr, sample_regs_intr));
static_assert(offsetof(PerfEventAttr, aux_watermark) == offsetof(perf_event_attr, aux_watermark));
static_assert(offsetof(PerfEventAttr, sample_max_stack) == offsetof(perf_event_attr, sample_max_stack));
static_assert(offsetof(PerfEventAttr, aux_sample_size) == offsetof(perf_event_attr, aux_sample_size));
static_assert(offsetof(PerfEventAttr, sig_data) == offsetof(perf_event_attr, sig_data));

static_assert(offsetof(UserPage, index) == offsetof(perf_event_mmap_page, index));
static_assert(offsetof(UserPage, offset) == offsetof(perf_event_mmap_page, offset));
static_assert(offsetof(UserPage, capabilities) == offsetof(perf_event_mmap_page, capabilities));
static_assert(offsetof(UserPage, pmc_width) == offsetof(perf_event_mmap_page, pmc_width));
static_assert(offsetof(UserPage, time_mult) == offsetof(perf_event_mmap_page, time_mult));
static_assert(offsetof(UserPage, time_mask) == offsetof(perf_event_mmap_page, time_mask));
static_assert(offsetof(UserPage, data_head) == offsetof(perf_event_mmap_page, data_head));
static_assert(offsetof(UserPage, data_size) == offsetof(perf_event_mmap_page, data_size));
static_assert(offsetof(UserPage, aux_size) == offsetof(perf_event_mmap_page, aux_size));

// A bit field has no offset: set one at a time in both, and compare the bytes.
#define CHECK_SAME_BIT(name)                                                    \
  do {                                                                          \
    PerfEventAttr ours{};                                                       \
    perf_event_attr theirs{};                                                   \
    ours.name = 1;                                                              \
    theirs.name = 1;                                                            \
    INFO(#name);                                                                \
    CHECK(memcmp(&ours, &theirs, std::min(sizeof(ours), sizeof(theirs))) == 0); \
  } while (false)

TEST_CASE("every flag of the attr is at its place", "[perf_abi]") {
  CHECK_SAME_BIT(disabled);
  CHECK_SAME_BIT(inherit);
  CHECK_SAME_BIT(pinned);
  CHECK_SAME_BIT(exclusive);
  CHECK_SAME_BIT(exclude_user);
  CHECK_SAME_BIT(exclude_kernel);
  CHECK_SAME_BIT(exclude_hv);
  CHECK_SAME_BIT(exclude_idle);
  CHECK_SAME_BIT(mmap);
  CHECK_SAME_BIT(comm);
  CHECK_SAME_BIT(freq);
  CHECK_SAME_BIT(inherit_stat);
  CHECK_SAME_BIT(enable_on_exec);
  CHECK_SAME_BIT(task);
  CHECK_SAME_BIT(watermark);
  CHECK_SAME_BIT(precise_ip);
  CHECK_SAME_BIT(mmap_data);
  CHECK_SAME_BIT(sample_id_all);
  CHECK_SAME_BIT(exclude_host);
  CHECK_SAME_BIT(exclude_guest);
  CHECK_SAME_BIT(exclude_callchain_kernel);
  CHECK_SAME_BIT(exclude_callchain_user);
  CHECK_SAME_BIT(mmap2);
  CHECK_SAME_BIT(comm_exec);
  CHECK_SAME_BIT(use_clockid);
  CHECK_SAME_BIT(context_switch);
  CHECK_SAME_BIT(write_backward);
  CHECK_SAME_BIT(namespaces);
  CHECK_SAME_BIT(ksymbol);
  CHECK_SAME_BIT(bpf_event);
  CHECK_SAME_BIT(aux_output);
  CHECK_SAME_BIT(cgroup);
  CHECK_SAME_BIT(text_poke);
  CHECK_SAME_BIT(build_id);
  CHECK_SAME_BIT(inherit_thread);
  CHECK_SAME_BIT(remove_on_exec);
  CHECK_SAME_BIT(sigtrap);
}

TEST_CASE("the attr's size is the smallest published one that holds what is used", "[perf_abi]") {
  PerfEventAttr attr{};
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER0);
  attr.config1 = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER0);
  attr.config2 = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER1);
  attr.branch_sample_type = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER2);
  attr.sample_stack_user = 8;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER3);
  attr.clockid = -1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER3);
  attr.sample_regs_intr = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER4);
  attr.sample_max_stack = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER5);
  attr.aux_sample_size = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER6);
  attr.sig_data = 1;
  CHECK(AttrSize(attr) == PERF_ATTR_SIZE_VER7);
  attr.config3 = 1;
  CHECK(AttrSize(attr) == 136);
}

TEST_CASE("event constants are the kernel's", "[perf_abi]") {
  CHECK(event::kCycles.config == PERF_COUNT_HW_CPU_CYCLES);
  CHECK(event::kInstructions.config == PERF_COUNT_HW_INSTRUCTIONS);
  CHECK(event::kCacheReferences.config == PERF_COUNT_HW_CACHE_REFERENCES);
  CHECK(event::kCacheMisses.config == PERF_COUNT_HW_CACHE_MISSES);
  CHECK(event::kBranches.config == PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
  CHECK(event::kBranchMisses.config == PERF_COUNT_HW_BRANCH_MISSES);
  CHECK(event::kBusCycles.config == PERF_COUNT_HW_BUS_CYCLES);
  CHECK(event::kStalledCyclesFrontend.config == PERF_COUNT_HW_STALLED_CYCLES_FRONTEND);
  CHECK(event::kStalledCyclesBackend.config == PERF_COUNT_HW_STALLED_CYCLES_BACKEND);
  CHECK(event::kRefCycles.config == PERF_COUNT_HW_REF_CPU_CYCLES);
  CHECK(event::kAlignmentFaults.config == PERF_COUNT_SW_ALIGNMENT_FAULTS);
  CHECK(event::kEmulationFaults.config == PERF_COUNT_SW_EMULATION_FAULTS);
  CHECK(event::kBpfOutput.config == PERF_COUNT_SW_BPF_OUTPUT);
}

}  // namespace
}  // namespace perfkit::sys

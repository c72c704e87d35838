// perfkit's constants, compared with the build machine's <linux/perf_event.h>.
#include <linux/perf_event.h>

#include "perfkit/sample.h"

namespace perfkit {
namespace {

constexpr bool Equal(uint64_t ours, uint64_t theirs) { return ours == theirs; }
constexpr bool Equal(RecordType ours, uint64_t theirs) { return static_cast<uint64_t>(ours) == theirs; }

static_assert(Equal(RecordType::kMmap, PERF_RECORD_MMAP) && Equal(RecordType::kLost, PERF_RECORD_LOST));
static_assert(Equal(RecordType::kComm, PERF_RECORD_COMM) && Equal(RecordType::kExit, PERF_RECORD_EXIT));
static_assert(Equal(RecordType::kThrottle, PERF_RECORD_THROTTLE));
static_assert(Equal(RecordType::kUnthrottle, PERF_RECORD_UNTHROTTLE) && Equal(RecordType::kFork, PERF_RECORD_FORK));
static_assert(Equal(RecordType::kRead, PERF_RECORD_READ) && Equal(RecordType::kSample, PERF_RECORD_SAMPLE));
static_assert(Equal(RecordType::kMmap2, PERF_RECORD_MMAP2) && Equal(RecordType::kAux, PERF_RECORD_AUX));
static_assert(Equal(RecordType::kItraceStart, PERF_RECORD_ITRACE_START));
static_assert(Equal(RecordType::kLostSamples, PERF_RECORD_LOST_SAMPLES));
static_assert(Equal(RecordType::kSwitch, PERF_RECORD_SWITCH));
static_assert(Equal(RecordType::kSwitchCpuWide, PERF_RECORD_SWITCH_CPU_WIDE));
static_assert(Equal(RecordType::kNamespaces, PERF_RECORD_NAMESPACES));
static_assert(Equal(RecordType::kKsymbol, PERF_RECORD_KSYMBOL) && Equal(RecordType::kBpfEvent, PERF_RECORD_BPF_EVENT));
static_assert(Equal(RecordType::kCgroup, PERF_RECORD_CGROUP) && Equal(RecordType::kTextPoke, PERF_RECORD_TEXT_POKE));
static_assert(Equal(RecordType::kAuxOutputHwId, PERF_RECORD_AUX_OUTPUT_HW_ID));

static_assert(Equal(kMiscCpuMode, PERF_RECORD_MISC_CPUMODE_MASK) && Equal(kMiscCommExec, PERF_RECORD_MISC_COMM_EXEC));
static_assert(Equal(kMiscMmapData, PERF_RECORD_MISC_MMAP_DATA) && Equal(kMiscExactIp, PERF_RECORD_MISC_EXACT_IP));
static_assert(Equal(kMiscSwitchOut, PERF_RECORD_MISC_SWITCH_OUT));
static_assert(Equal(kMiscSwitchPreempted, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
static_assert(Equal(kMiscMmapBuildId, PERF_RECORD_MISC_MMAP_BUILD_ID));
static_assert(Equal(static_cast<uint64_t>(CpuMode::kGuestUser), PERF_RECORD_MISC_GUEST_USER));

static_assert(Equal(static_cast<uint64_t>(KsymbolRecord::Type::kBpf), PERF_RECORD_KSYMBOL_TYPE_BPF));
static_assert(Equal(static_cast<uint64_t>(KsymbolRecord::Type::kOutOfLine), PERF_RECORD_KSYMBOL_TYPE_OOL));
static_assert(Equal(KsymbolRecord::kUnregister, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER));
static_assert(Equal(static_cast<uint64_t>(BpfEventRecord::Type::kProgramLoad), PERF_BPF_EVENT_PROG_LOAD));
static_assert(Equal(static_cast<uint64_t>(BpfEventRecord::Type::kProgramUnload), PERF_BPF_EVENT_PROG_UNLOAD));

static_assert(Equal(kSampleIp, PERF_SAMPLE_IP) && Equal(kSampleTid, PERF_SAMPLE_TID));
static_assert(Equal(kSampleTime, PERF_SAMPLE_TIME) && Equal(kSampleAddr, PERF_SAMPLE_ADDR));
static_assert(Equal(kSampleRead, PERF_SAMPLE_READ) && Equal(kSampleCallchain, PERF_SAMPLE_CALLCHAIN));
static_assert(Equal(kSampleId, PERF_SAMPLE_ID) && Equal(kSampleCpu, PERF_SAMPLE_CPU));
static_assert(Equal(kSamplePeriod, PERF_SAMPLE_PERIOD) && Equal(kSampleStreamId, PERF_SAMPLE_STREAM_ID));
static_assert(Equal(kSampleRaw, PERF_SAMPLE_RAW) && Equal(kSampleBranchStack, PERF_SAMPLE_BRANCH_STACK));
static_assert(Equal(kSampleRegsUser, PERF_SAMPLE_REGS_USER) && Equal(kSampleStackUser, PERF_SAMPLE_STACK_USER));
static_assert(Equal(kSampleWeight, PERF_SAMPLE_WEIGHT) && Equal(kSampleDataSrc, PERF_SAMPLE_DATA_SRC));
static_assert(Equal(kSampleIdentifier, PERF_SAMPLE_IDENTIFIER));
static_assert(Equal(kSampleTransaction, PERF_SAMPLE_TRANSACTION) && Equal(kSampleRegsIntr, PERF_SAMPLE_REGS_INTR));
static_assert(Equal(kSamplePhysAddr, PERF_SAMPLE_PHYS_ADDR) && Equal(kSampleAux, PERF_SAMPLE_AUX));
static_assert(Equal(kSampleCgroup, PERF_SAMPLE_CGROUP) && Equal(kSampleDataPageSize, PERF_SAMPLE_DATA_PAGE_SIZE));
static_assert(Equal(kSampleCodePageSize, PERF_SAMPLE_CODE_PAGE_SIZE));
static_assert(Equal(kSampleWeightStruct, PERF_SAMPLE_WEIGHT_STRUCT));
static_assert(Equal(PERF_SAMPLE_MAX, 1 << 25) || PERF_SAMPLE_MAX > 1 << 25);

static_assert(Equal(kReadTimeEnabled, PERF_FORMAT_TOTAL_TIME_ENABLED) && Equal(kReadId, PERF_FORMAT_ID));
static_assert(Equal(kReadTimeRunning, PERF_FORMAT_TOTAL_TIME_RUNNING) && Equal(kReadGroup, PERF_FORMAT_GROUP));
static_assert(Equal(kBranchHwIndex, PERF_SAMPLE_BRANCH_HW_INDEX));

}  // namespace
}  // namespace perfkit

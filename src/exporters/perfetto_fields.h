// Numbers of the fields of Perfetto's messages: protos/perfetto/trace of github.com/google/perfetto. The values of its
// enums are beside the field that has them.
#pragma once

#include <cstdint>

namespace perfkit::exporters::perfetto {

// BUILTIN_CLOCK_ of common/builtin_clock.proto.
inline constexpr uint32_t kClockRealtime = 1, kClockMonotonic = 3;

namespace trace {  // trace.proto
inline constexpr uint32_t kPacket = 1;
}
namespace packet {  // trace_packet.proto
inline constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12;
inline constexpr uint32_t kSequenceFlags = 13, kIncrementalStateCleared = 41, kDefaults = 59, kTrackDescriptor = 60;
inline constexpr uint32_t kFirstOnSequence = 87, kStackSample = 135;
inline constexpr uint32_t kFlagCleared = 1, kFlagNeedsState = 2;  // kSequenceFlags
}  // namespace packet
namespace clock_snapshot {  // clock_snapshot.proto
inline constexpr uint32_t kClocks = 1, kPrimaryTraceClock = 2;
inline constexpr uint32_t kClockId = 1, kTimestamp = 2;  // of a clock
}  // namespace clock_snapshot
namespace defaults {  // trace_packet_defaults.proto
inline constexpr uint32_t kTimestampClockId = 58, kStackSample = 100;
}
namespace stack_sample_defaults {  // profiling/stack_sample.proto
inline constexpr uint32_t kSource = 1, kPrimaryDescriptor = 2;
}
namespace stack_sample {
inline constexpr uint32_t kTaskContext = 1, kExecutionContext = 3, kCallstackIid = 6, kUnwindError = 7;
inline constexpr uint32_t kPrimaryWeight = 11, kFollowerDescriptorIids = 13, kFollowerWeights = 14;
}  // namespace stack_sample
namespace task_context {
inline constexpr uint32_t kPid = 2, kTid = 3, kAsyncId = 4;
}
namespace async_context {
inline constexpr uint32_t kIid = 1, kName = 2, kKind = 3;
}
namespace execution_context {
inline constexpr uint32_t kMode = 3;
inline constexpr uint32_t kModeUser = 1, kModeKernel = 2;
}  // namespace execution_context
namespace sample_counter {  // StackSample.CounterDescriptor
inline constexpr uint32_t kIid = 1, kName = 2, kUnit = 3, kDescription = 6;
inline constexpr uint32_t kUnitNanoseconds = 1, kUnitCycles = 2, kUnitInstructions = 3, kUnitBytes = 4;
inline constexpr uint32_t kUnitPageFaults = 5, kUnitCacheMisses = 6, kUnitCacheReferences = 7, kUnitBranchMisses = 8;
inline constexpr uint32_t kUnitCount = 9;
}  // namespace sample_counter
namespace interned {  // interned_data/interned_data.proto
inline constexpr uint32_t kEventNames = 2, kFunctionNames = 5, kFrames = 6, kCallstacks = 7, kBuildIds = 16;
inline constexpr uint32_t kMappingPaths = 17, kSourcePaths = 18, kMappings = 19, kCounterDescriptors = 50;
inline constexpr uint32_t kAsyncContexts = 51;
inline constexpr uint32_t kIid = 1, kText = 2;  // of InternedString and EventName
}  // namespace interned
namespace mapping {  // profiling/profile_common.proto
inline constexpr uint32_t kIid = 1, kBuildId = 2, kPathStringIds = 7;
}
namespace frame {
inline constexpr uint32_t kIid = 1, kFunctionNameId = 2, kMappingId = 3, kRelPc = 4, kSourcePathIid = 5;
inline constexpr uint32_t kLineNumber = 6, kKind = 7;
inline constexpr uint32_t kKindNative = 1, kKindKernel = 2;
}  // namespace frame
namespace callstack {
inline constexpr uint32_t kIid = 1, kFrameIds = 2;
}
namespace track {  // track_event/track_descriptor.proto
inline constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8;
}
namespace process {  // track_event/process_descriptor.proto
inline constexpr uint32_t kPid = 1, kName = 6;
}
namespace thread {  // track_event/thread_descriptor.proto
inline constexpr uint32_t kPid = 1, kTid = 2, kName = 5;
}
namespace counter {  // track_event/counter_descriptor.proto
inline constexpr uint32_t kUnit = 3;
inline constexpr uint32_t kUnitTimeNs = 1, kUnitCount = 2, kUnitSizeBytes = 3;
}  // namespace counter
namespace event {  // track_event/track_event.proto
inline constexpr uint32_t kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kName = 23;
inline constexpr uint32_t kDoubleCounterValue = 44, kFlowIds = 47;
inline constexpr uint32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterType = 4;  // kType
}  // namespace event
namespace annotation {  // track_event/debug_annotation.proto
inline constexpr uint32_t kUintValue = 3, kIntValue = 4, kStringValue = 6, kName = 10, kArrayValues = 12;
}

}  // namespace perfkit::exporters::perfetto

// Numbers of the fields of pprof's messages: proto/profile.proto of github.com/google/pprof.
#pragma once

#include <cstdint>

namespace perfkit::exporters::pprof {

namespace profile {
inline constexpr uint32_t kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5, kStringTable = 6;
inline constexpr uint32_t kTimeNanos = 9, kDurationNanos = 10, kComment = 13, kDefaultSampleType = 14;
}  // namespace profile
namespace value_type {
inline constexpr uint32_t kType = 1, kUnit = 2;
}
namespace sample {
inline constexpr uint32_t kLocationId = 1, kValue = 2, kLabel = 3;
}
namespace label {
inline constexpr uint32_t kKey = 1, kStr = 2, kNum = 3, kNumUnit = 4;
}
namespace mapping {
inline constexpr uint32_t kId = 1, kFilename = 5, kBuildId = 6;
inline constexpr uint32_t kHasFunctions = 7, kHasFilenames = 8, kHasLineNumbers = 9, kHasInlineFrames = 10;
}  // namespace mapping
namespace location {
inline constexpr uint32_t kId = 1, kMappingId = 2, kAddress = 3, kLine = 4;
}
namespace line {
inline constexpr uint32_t kFunctionId = 1, kLine = 2;
}
namespace function {
inline constexpr uint32_t kId = 1, kName = 2, kFilename = 4;
}

}  // namespace perfkit::exporters::pprof

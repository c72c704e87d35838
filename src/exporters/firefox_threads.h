// The threads of a Firefox profile: samples and markers.
#pragma once

#include <cstddef>

#include "perfkit/profile.h"
#include "perfkit/profile_writer.h"
#include "src/exporters/firefox_tables.h"
#include "src/exporters/json_writer.h"

namespace perfkit::exporters {

// Milliseconds since `from_ns`, the unit of all times there.
inline double FirefoxTime(uint64_t time_ns, uint64_t from_ns) {
  return (time_ns < from_ns ? -static_cast<double>(from_ns - time_ns) : static_cast<double>(time_ns - from_ns)) / 1e6;
}

// Writes the array `threads`. Each of them has samples of one event: a thread of the profile becomes one with its name
// for event `event`, which has its markers too, and one more, "name (page-faults)", for each other event that it has
// samples of. Samples without a time are in threads of their own, all at the begin: "name (cpu-clock, times unknown)".
void WriteFirefoxThreads(const Profile& profile, const FirefoxTables& tables, size_t event, uint64_t from_ns,
                         const WriteOptions& options, JsonWriter& json);

// Writes the array `markerSchema`.
void WriteFirefoxMarkerSchemas(JsonWriter& json);

}  // namespace perfkit::exporters

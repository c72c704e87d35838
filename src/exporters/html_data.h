// A profile's tables, as the HTML page reads them.
#pragma once

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"
#include "perfkit/profile_writer.h"
#include "src/exporters/json_writer.h"

namespace perfkit::exporters {

// Writes one JSON object: each table as columns, times as differences from the entry before (html/data.js reads it).
// Calls options.progress. `add_members`, if any, adds to the object.
void WriteHtmlData(
    const Profile& profile, const WriteOptions& options, JsonWriter& json,
    absl::FunctionRef<void()> add_members = [] {});

}  // namespace perfkit::exporters

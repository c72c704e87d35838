// A profile's tables, as the HTML page reads them.
#pragma once

#include "perfkit/profile.h"
#include "perfkit/profile_writer.h"
#include "src/exporters/json_writer.h"

namespace perfkit::exporters {

// Writes one JSON object: each table as columns, times as differences from the entry before (html/data.js reads it).
// Calls options.progress.
void WriteHtmlData(const Profile& profile, const WriteOptions& options, JsonWriter& json);

}  // namespace perfkit::exporters

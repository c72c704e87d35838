// The data of the HTML page of a difference of two profiles.
#pragma once

#include "perfkit/profile_difference.h"
#include "src/exporters/json_writer.h"

namespace perfkit::exporters {

// Writes one JSON object (html/difference_page.js reads it). Requires what WriteDifferenceHtml does.
void WriteHtmlDifference(const ProfileDifference& difference, JsonWriter& json);

}  // namespace perfkit::exporters

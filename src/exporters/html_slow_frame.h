// The member "slow" of the HTML page's data: what the view of a slow frame shows beside the profile.
#pragma once

#include "src/exporters/json_writer.h"
#include "src/profile/frame_cut.h"

namespace perfkit::exporters {

// Writes a key and an object (html/slow_model.js reads it). Times are relative to the frame's begin.
void WriteHtmlSlowFrame(const profile::FrameCut& cut, JsonWriter& json);

}  // namespace perfkit::exporters

// Composes errors about text: the event as written, the position, the mistake.
//
// A piece that a parser looks at is a view into the text as the user wrote it, so that its address tells its position.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace perfkit::event {

// Returns InvalidArgument: "event 'cycles:q', character 8: <wrong>". `piece` should be a view into `whole`. The
// position is left out if it is not (text of a sysfs file), or if it is the beginning of `whole`.
absl::Status WrongAt(std::string_view whole, std::string_view piece, const std::string& wrong);

// Returns NotFound, with the same beginning, for text that is well-formed but names something that this machine lacks.
absl::Status MissingAt(std::string_view whole, std::string_view piece, const std::string& wrong);

// Returns the same text with another code, for a file that could not be read.
absl::Status ErrorAt(absl::StatusCode code, std::string_view whole, std::string_view piece, const std::string& wrong);

// Returns `text` fit for quotes on one line: cut to a bound, with control characters and other odd bytes as \xNN.
std::string Printable(std::string_view text);

}  // namespace perfkit::event

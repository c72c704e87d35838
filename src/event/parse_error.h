// What a parser says about text that it cannot accept: the event as written, the place, what is wrong there.
//
// Every piece that a parser looks at is a view into the text as the user wrote it, so its address is its position.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace perfkit::event {

// InvalidArgument: "event 'cycles:q', character 8: <wrong>". `piece` should be a view into `whole`; the position is
// left out when it is not (text of a sysfs file) or is its beginning.
absl::Status WrongAt(std::string_view whole, std::string_view piece, const std::string& wrong);

// NotFound, with the same beginning: well-formed, but this machine has no such thing.
absl::Status MissingAt(std::string_view whole, std::string_view piece, const std::string& wrong);

// The same text as any code: for causes that come from a file that could not be read.
absl::Status ErrorAt(absl::StatusCode code, std::string_view whole, std::string_view piece, const std::string& wrong);

// `text` fit to be printed inside quotes in one line: cut to a bound, control and other odd bytes as \xNN.
std::string Printable(std::string_view text);

}  // namespace perfkit::event

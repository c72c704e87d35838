// What a writer passes to its sink, as one text.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "src/exporters/json_writer.h"
#include "src/profile/sink_buffer.h"

namespace perfkit::exporters {

// `write` takes a sink, and returns a status, which must be OK.
template <class Write>
std::string Written(Write&& write) {
  std::string text;
  CHECK(write([&](std::string_view bytes) {
          text += bytes;
          return absl::OkStatus();
        }) == absl::OkStatus());
  return text;
}

// `write` takes a JsonWriter.
template <class Write>
std::string WrittenJson(Write&& write) {
  return Written([&](auto&& sink) {
    profile::SinkBuffer out(sink);
    JsonWriter json(out);
    write(json);
    return out.Finish();
  });
}

}  // namespace perfkit::exporters

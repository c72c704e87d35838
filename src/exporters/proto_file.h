// A protobuf message that is written one submessage at a time.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>

#include "src/profile/sink_buffer.h"

namespace perfkit::exporters {

// The fields of a file's outermost message, each handed on when it is complete: what is held is the largest of them.
class ProtoFile {
 public:
  explicit ProtoFile(profile::SinkBuffer& out) : out_(out) {}

  // A field that is a message: `fill` adds its fields to the pbf_writer that it is given.
  template <class Fill>
  void Message(protozero::pbf_tag_type tag, Fill&& fill) {
    Field([&](protozero::pbf_writer& file) {
      protozero::pbf_writer message(file, tag);
      fill(message);
    });
  }

  // Fields of other types: `add` adds them to the pbf_writer that it is given.
  template <class Add>
  void Field(Add&& add) {
    bytes_.clear();
    protozero::pbf_writer file(bytes_);
    add(file);
    out_.Add(bytes_);
  }

  bool failed() const { return out_.failed(); }

 private:
  profile::SinkBuffer& out_;
  std::string bytes_;
};

}  // namespace perfkit::exporters

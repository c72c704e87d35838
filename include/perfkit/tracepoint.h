// What the fields of a tracepoint are, from its `format` file, and their values in the raw data of a sample.
//
//   field:char prev_comm[16];	offset:8;	size:16;	signed:0;
//   field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
//
// File and data are both taken for hostile: whatever they say, only the data's own bytes are read.
//
//   auto format = perfkit::TracepointFormat::Of("syscalls:sys_enter_openat");
//   const perfkit::TracepointField* flags = format->Find("flags");
//   ...  // in the visitor of samples of that event:
//   flags->Unsigned(sample.raw())
//
// Source: kernel/trace/trace_events.c (f_show), include/trace/stages/ of the kernel for the two kinds of dynamic data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/ring_reader.h"

namespace perfkit {

// One field. All that reads data gives nothing where the data is too short for it. `raw` is Sample::raw(): views of it
// die with the sample.
struct TracepointField {
  enum class Storage : uint8_t {
    kStatic,    // at `offset`, `size` bytes
    kDynamic,   // __data_loc: a word says how far from the start of the data, and how much
    kRelative,  // __rel_loc: the same from after that word
  };

  std::string type;  // as declared: "unsigned long", "char"
  std::string name;
  uint32_t offset = 0, size = 0;
  uint32_t element_size = 0;  // of an array; `size` for all else
  bool is_signed = false;
  bool is_array = false;
  bool is_text = false;    // an array of char
  bool is_common = false;  // common_pid and its like, which every tracepoint has
  Storage storage = Storage::kStatic;

  // What the field holds: the bytes of an array or of dynamic data, not of the word that points to it.
  std::optional<Bytes> Data(Bytes raw) const;
  // How many elements there are: 1 for what is no array.
  size_t Count(Bytes raw) const;
  // Element `i` as a number, extended by its sign. Nothing for elements that are not 1, 2, 4 or 8 bytes.
  std::optional<int64_t> Signed(Bytes raw, size_t i = 0) const;
  std::optional<uint64_t> Unsigned(Bytes raw, size_t i = 0) const;
  // An array of characters, up to its NUL or its end.
  std::optional<std::string_view> Text(Bytes raw) const;
};

// Fields of one tracepoint. A value: read it once, ahead of the samples.
class TracepointFormat {
 public:
  // The format of "group:name". InvalidArgument: another kind of event. NotFound, PermissionDenied: as ParseEvent.
  static absl::StatusOr<TracepointFormat> Of(const EventSpec& tracepoint, const EventRoots& roots = {});

  // Parses the text of a format file. InvalidArgument when it is none: with the line, and what is wrong with it.
  static absl::StatusOr<TracepointFormat> Parse(std::string_view text);

  const std::string& name() const { return name_; }
  uint64_t id() const { return id_; }
  std::span<const TracepointField> fields() const { return fields_; }
  // Null when there is none.
  const TracepointField* Find(std::string_view name) const;

 private:
  std::string name_;
  uint64_t id_ = 0;
  std::vector<TracepointField> fields_;
};

}  // namespace perfkit

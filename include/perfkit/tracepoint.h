// The fields of a tracepoint, from its `format` file, and their values in the raw data of samples.
//
//   field:char prev_comm[16];	offset:8;	size:16;	signed:0;
//   field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
//
// Both the format and the data may be hostile: nothing outside of the data is read.
//
//   auto format = perfkit::TracepointFormat::Of("syscalls:sys_enter_openat");
//   const perfkit::TracepointField* flags = format->Find("flags");
//   ...  // in the visitor of samples of that event:
//   flags->Unsigned(sample.raw())
//
// Source: kernel/trace/trace_events.c (f_show), include/trace/stages/ of the kernel for the two kinds of dynamic data.
#pragma once

#include "perfkit/detail/library_only.h"

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

// One field of a tracepoint. `raw` is Sample::raw(); methods return nullopt, or 0, if it is too short for the field.
// Views of it are valid as long as the sample. Thread-safe to read.
struct TracepointField {
  enum class Storage : uint8_t {
    kStatic,    // `size` bytes at `offset`; for an array with `size` 0, all bytes from `offset` on.
    kDynamic,   // __data_loc: a u32 at `offset` has the data's size (high half) and its offset from the start.
    kRelative,  // __rel_loc: the same, but the data's offset counts from the end of that u32.
  };

  std::string type;  // As declared: "unsigned long", "char".
  std::string name;
  uint32_t offset = 0, size = 0;  // In bytes.
  uint32_t element_size = 0;      // Bytes of an element of an array; for other fields `size`.
  bool is_signed = false;
  bool is_array = false;   // Also if the data is elsewhere and is declared without brackets: cpumask_t.
  bool is_text = false;    // An array of char.
  bool is_common = false;  // common_pid etc., which every tracepoint has.
  Storage storage = Storage::kStatic;

  // Returns the bytes of the field; for dynamic data the bytes that it refers to.
  std::optional<Bytes> Data(Bytes raw) const;
  // Returns the number of elements of an array; 1 for other fields.
  size_t Count(Bytes raw) const;
  // Return element `i` as a number, sign-extended if `is_signed`; nullopt if there is no such element, or if elements
  // are not 1, 2, 4 or 8 bytes.
  std::optional<int64_t> Signed(Bytes raw, size_t i = 0) const;
  std::optional<uint64_t> Unsigned(Bytes raw, size_t i = 0) const;
  // Returns an array of one-byte elements as text, up to its first NUL or its end; nullopt for other fields. `is_text`
  // says whether it is text.
  std::optional<std::string_view> Text(Bytes raw) const;
};

// The fields of one tracepoint. A value; thread-safe to read. Parse it once, before the samples.
class TracepointFormat {
 public:
  // Reads the format of "group:name". Errors: InvalidArgument if the event is not a tracepoint; NotFound,
  // PermissionDenied and FailedPrecondition as ParseEvent; those of Parse.
  static absl::StatusOr<TracepointFormat> Of(const EventSpec& tracepoint, const EventRoots& roots = {});

  // Parses the text of a format file. Errors: InvalidArgument with the line and what is wrong with it.
  static absl::StatusOr<TracepointFormat> Parse(std::string_view text);

  const std::string& name() const { return name_; }
  uint64_t id() const { return id_; }
  // Both are valid as long as the format. Find returns nullptr if there is no such field.
  std::span<const TracepointField> fields() const { return fields_; }
  const TracepointField* Find(std::string_view name) const;

 private:
  std::string name_;
  uint64_t id_ = 0;
  std::vector<TracepointField> fields_;
};

}  // namespace perfkit

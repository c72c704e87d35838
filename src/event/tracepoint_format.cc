// Parses the format file of a tracepoint, and reads fields from the raw data of its samples. The file is text of the
// kernel: one line for each field, in the order of the data. The parser accepts any text and rejects lines that would
// place a field beyond the largest record; the readers check offset and size against the data of each sample again,
// because its length may vary. Source: see include/perfkit/tracepoint.h.
#include "perfkit/tracepoint.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/base/cursor.h"
#include "src/base/number.h"
#include "src/base/text.h"

namespace perfkit {
namespace {

constexpr size_t kMaxFields = 1024;
constexpr uint32_t kLargestRaw = 1 << 16;  // The size of a record has 16 bits.

absl::Status BadLine(std::string_view line, std::string_view why) {
  constexpr size_t kShown = 120;
  std::string shown(line.substr(0, kShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("tracepoint format, line '%s': %s. Remedy: pass the text of a file "
                                      "events/<group>/<name>/format of tracefs",
                                      shown, why));
}

bool HasWord(std::string_view text, std::string_view word) {
  bool found = false;
  base::ForEachPiece(text, ' ', [&](std::string_view piece) { found = found || piece == word; });
  return found;
}

// Returns the bytes of one element of a C type, by the names that the kernel's tracepoints use; 1 for unknown types.
uint32_t SizeOfType(std::string_view type) {
  constexpr std::pair<std::string_view, uint32_t> kSizes[] = {
      {"char", 1},   {"bool", 1},   {"u8", 1},     {"s8", 1},     {"__u8", 1},     {"__s8", 1},   {"uint8_t", 1},
      {"short", 2},  {"u16", 2},    {"s16", 2},    {"__u16", 2},  {"__le16", 2},   {"__be16", 2}, {"uint16_t", 2},
      {"long", 8},   {"u64", 8},    {"s64", 8},    {"__u64", 8},  {"__s64", 8},    {"size_t", 8}, {"uint64_t", 8},
      {"__be64", 8}, {"__le64", 8}, {"loff_t", 8}, {"int", 4},    {"unsigned", 4}, {"u32", 4},    {"s32", 4},
      {"__u32", 4},  {"__s32", 4},  {"__le32", 4}, {"__be32", 4}, {"uint32_t", 4}, {"pid_t", 4},  {"dev_t", 4},
      {"cpumask_t", 8},
  };
  // Types are those of a 64-bit kernel.
  if (type.find('*') != std::string_view::npos) return 8;
  for (const auto& [word, size] : kSizes) {
    if (HasWord(type, word)) return size;
  }
  return 1;
}

// Parses "unsigned long args[6]" or "__data_loc char[] name": type, name, and the number of elements, 0 if unknown.
bool ParseDeclaration(std::string_view text, TracepointField& field, uint64_t& count) {
  text = base::Trim(text);
  for (const auto& [mark, storage] : {std::pair("__data_loc ", TracepointField::Storage::kDynamic),
                                      std::pair("__rel_loc ", TracepointField::Storage::kRelative)}) {
    if (!text.starts_with(mark)) continue;
    field.storage = storage;
    text = base::Trim(text.substr(std::string_view(mark).size()));
  }
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  field.is_array = open != std::string_view::npos && close != std::string_view::npos && close > open;
  std::string without(text);
  if (field.is_array) {
    count = base::ParseNumber(text.substr(open + 1, close - open - 1)).value_or(0);
    without.erase(open, close - open + 1);
  }
  const std::string_view rest = base::Trim(without);
  const size_t last = rest.find_last_of(" *");
  if (last == std::string_view::npos || last + 1 == rest.size()) return false;
  field.type = base::Trim(rest.substr(0, last + 1));
  field.name = rest.substr(last + 1);
  return !field.type.empty();
}

// "__data_loc cpumask_t cpumask" has no brackets, but its data is an array of words (the kernel's __cpumask).
void FinishField(uint64_t count, TracepointField& field) {
  field.is_array = field.is_array || field.storage != TracepointField::Storage::kStatic;
  field.is_common = field.name.starts_with("common_");
  field.is_text = field.is_array && HasWord(field.type, "char") && !HasWord(field.type, "unsigned");
  field.element_size = field.size;
  if (!field.is_array) return;
  // The size of the whole array divided by its length is certain. The type's name is a guess that is needed if the
  // length is an expression or the array is elsewhere.
  const bool counted = field.storage == TracepointField::Storage::kStatic && count > 0 && field.size % count == 0;
  field.element_size = counted ? static_cast<uint32_t>(field.size / count) : SizeOfType(field.type);
}

// Parses "field:<declaration>; offset:<n>; size:<n>; signed:<0|1>;". Returns nullopt if the line is not of that form.
std::optional<TracepointField> ParseField(std::string_view line) {
  TracepointField field;
  uint64_t count = 0;
  bool declared = false, placed = false, sized = false;
  base::ForEachPiece(line, ';', [&](std::string_view piece) {
    const auto [key, value] = base::Cut(base::Trim(piece), ':');
    const std::optional<uint32_t> number = base::ParseNumber<uint32_t>(base::Trim(value));
    // Some events of old kernels have "field special:"; to readers it is the same (tools/lib/traceevent/event-parse.c).
    if (key == "field" || key == "field special") declared = ParseDeclaration(value, field, count);
    if (key == "offset" && number) field.offset = *number, placed = *number <= kLargestRaw;
    if (key == "size" && number) field.size = *number, sized = *number <= kLargestRaw;
    if (key == "signed" && number) field.is_signed = *number != 0;
  });
  if (!declared || !placed || !sized) return std::nullopt;
  if (field.storage != TracepointField::Storage::kStatic && field.size != sizeof(uint32_t)) return std::nullopt;
  FinishField(count, field);
  return field;
}

}  // namespace

absl::StatusOr<TracepointFormat> TracepointFormat::Parse(std::string_view text) {
  TracepointFormat format;
  absl::Status status;
  base::ForEachPiece(text, '\n', [&](std::string_view line) {
    line = base::Trim(line);
    const auto [key, value] = base::Cut(line, ':');
    if (key == "name") format.name_ = base::Trim(value);
    if (key == "ID") {
      const std::optional<uint64_t> id = base::ParseNumber(base::Trim(value));
      if (!id) status.Update(BadLine(line, "its ID is not a number"));
      format.id_ = id.value_or(0);
    }
    if (key != "field" && key != "field special") return;
    std::optional<TracepointField> field = ParseField(line);
    if (!field) status.Update(BadLine(line, "the type, name, offset or size of a field is missing"));
    if (format.fields_.size() == kMaxFields) status.Update(BadLine(line, "there are too many fields"));
    if (field && status.ok()) format.fields_.push_back(*std::move(field));
  });
  if (!status.ok()) return status;
  if (format.name_.empty() || format.fields_.empty()) return BadLine(text, "the name or the fields are missing");
  return format;
}

const TracepointField* TracepointFormat::Find(std::string_view name) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const TracepointField& field) { return field.name == name; });
  return found == fields_.end() ? nullptr : &*found;
}

std::optional<Bytes> TracepointField::Data(Bytes raw) const {
  if (storage == Storage::kStatic) {
    // An array of size 0 is the rest of the data.
    if (is_array && size == 0 && offset <= raw.size()) return raw.subspan(offset);
    return base::Slice(raw, offset, size);
  }
  // The field holds where its data is: the offset in the low half, the length in the high one. __data_loc counts from
  // the record's begin, __rel_loc (Linux 5.17) from the end of the field itself.
  const std::optional<uint32_t> where = base::ReadAt<uint32_t>(raw, offset);
  if (!where) return std::nullopt;
  const uint64_t from = storage == Storage::kDynamic ? 0 : uint64_t{offset} + size;
  return base::Slice(raw, from + (*where & 0xffff), *where >> 16);
}

size_t TracepointField::Count(Bytes raw) const {
  const std::optional<Bytes> data = Data(raw);
  if (!data || element_size == 0) return 0;
  return data->size() / element_size;
}

std::optional<int64_t> TracepointField::Signed(Bytes raw, size_t i) const {
  const std::optional<Bytes> data = Data(raw);
  if (!data || i >= Count(raw)) return std::nullopt;
  const Bytes element = data->subspan(i * element_size, element_size);
  const auto as = [&]<class Narrow, class Wide>(Narrow, Wide) -> int64_t {
    return is_signed ? int64_t{*base::ReadAt<Narrow>(element, 0)} : int64_t{*base::ReadAt<Wide>(element, 0)};
  };
  switch (element_size) {
    case 1: return as(int8_t{}, uint8_t{});
    case 2: return as(int16_t{}, uint16_t{});
    case 4: return as(int32_t{}, uint32_t{});
    case 8: return base::ReadAt<int64_t>(element, 0);
  }
  return std::nullopt;
}

std::optional<uint64_t> TracepointField::Unsigned(Bytes raw, size_t i) const {
  const std::optional<int64_t> value = Signed(raw, i);
  return value ? std::optional(static_cast<uint64_t>(*value)) : std::nullopt;
}

std::optional<std::string_view> TracepointField::Text(Bytes raw) const {
  const std::optional<Bytes> data = Data(raw);
  if (!data || !is_array || element_size != 1) return std::nullopt;
  const char* const text = reinterpret_cast<const char*>(data->data());
  return base::Cut(std::string_view(text, data->size()), '\0').first;
}

}  // namespace perfkit

// Fuzzes the reader of tracepoint formats: a format file, a NUL, and the raw data of a sample.
#include <algorithm>

#include "perfkit/tracepoint.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {

PERFKIT_FUZZ_TARGET(FuzzTracepointFormat) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view text = all.substr(0, all.find('\0'));
  const Bytes raw = std::as_bytes(std::span(all)).subspan(std::min(text.size() + 1, size));
  const auto format = TracepointFormat::Parse(text);
  if (!format.ok()) {
    const std::string message(format.status().message());
    PERFKIT_FUZZ_CHECK(message.size() > 20 && message.size() < 1000);
    PERFKIT_FUZZ_CHECK(std::ranges::all_of(message, [](char c) { return c >= ' ' && c <= '~'; }));
    return 0;
  }
  for (const TracepointField& field : format->fields()) {
    PERFKIT_FUZZ_CHECK(!field.name.empty() && !field.type.empty());
    const std::optional<Bytes> bytes = field.Data(raw);
    PERFKIT_FUZZ_CHECK(!bytes || bytes->size() <= raw.size());
    volatile uint64_t sink = 0;
    if (bytes) {
      for (const std::byte byte : *bytes) sink = sink + static_cast<uint64_t>(byte);
    }
    const size_t count = field.Count(raw);
    PERFKIT_FUZZ_CHECK(count <= raw.size());
    for (size_t i = 0; i <= std::min<size_t>(count, 64); ++i) sink = sink + field.Unsigned(raw, i).value_or(0);
    if (const auto words = field.Text(raw)) PERFKIT_FUZZ_CHECK(words->size() <= raw.size());
  }
  return 0;
}

}  // namespace perfkit

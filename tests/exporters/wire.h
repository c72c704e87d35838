// The wire format of protocol buffers, decoded by hand: it shares no code with the writers.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::testing {

// A message: the values of each field, in their order. Numbers and submessages are told apart by the field's type.
struct WireMessage {
  struct Value {
    uint64_t number = 0;
    std::string bytes;
  };
  std::map<uint32_t, std::vector<Value>> fields;

  bool has(uint32_t field) const { return fields.contains(field); }
  // The last value of a field, as readers take it: 0 or "" if it is not there.
  uint64_t Number(uint32_t field) const { return has(field) ? fields.at(field).back().number : 0; }
  std::string Text(uint32_t field) const { return has(field) ? fields.at(field).back().bytes : ""; }
  double Double(uint32_t field) const {
    const uint64_t bits = Number(field);
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  size_t count(uint32_t field) const { return has(field) ? fields.at(field).size() : 0; }

  // A field that holds messages; empty if one is malformed.
  std::vector<WireMessage> Messages(uint32_t field) const;
  WireMessage Message(uint32_t field) const {
    std::vector<WireMessage> messages = Messages(field);
    return messages.empty() ? WireMessage() : messages.back();
  }
  // A repeated field of numbers, packed or not.
  std::vector<uint64_t> Numbers(uint32_t field) const;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[0]);
      bytes_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  std::optional<std::string_view> Bytes(uint64_t size) {
    if (size > bytes_.size()) return std::nullopt;
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view bytes_;
};

// nullopt if the bytes are no message.
inline std::optional<WireMessage> ParseWire(std::string_view bytes) {
  WireMessage message;
  WireReader reader(bytes);
  while (!reader.empty()) {
    const std::optional<uint64_t> tag = reader.Varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    WireMessage::Value value;
    const uint64_t type = *tag & 7;
    if (type == 0) {
      const std::optional<uint64_t> number = reader.Varint();
      if (!number) return std::nullopt;
      value.number = *number;
    } else if (type == 1 || type == 2) {
      const std::optional<uint64_t> size = type == 1 ? 8 : reader.Varint();
      const std::optional<std::string_view> content = size ? reader.Bytes(*size) : std::nullopt;
      if (!content) return std::nullopt;
      value.bytes = *content;
      if (type == 1) std::memcpy(&value.number, content->data(), sizeof(value.number));
    } else {
      return std::nullopt;
    }
    message.fields[static_cast<uint32_t>(*tag >> 3)].push_back(std::move(value));
  }
  return message;
}

inline std::vector<WireMessage> WireMessage::Messages(uint32_t field) const {
  std::vector<WireMessage> messages;
  if (!has(field)) return messages;
  for (const Value& value : fields.at(field)) {
    std::optional<WireMessage> message = ParseWire(value.bytes);
    if (!message) return {};
    messages.push_back(*std::move(message));
  }
  return messages;
}

inline std::vector<uint64_t> WireMessage::Numbers(uint32_t field) const {
  std::vector<uint64_t> numbers;
  if (!has(field)) return numbers;
  for (const Value& value : fields.at(field)) {
    if (value.bytes.empty()) numbers.push_back(value.number);
    WireReader reader(value.bytes);
    while (!reader.empty()) numbers.push_back(reader.Varint().value_or(0));
  }
  return numbers;
}

}  // namespace perfkit::testing

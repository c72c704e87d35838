// Reads perf.data files, as far as tests need it: the attrs with their ids, and the records of the data section.
//
// Layout: tools/perf/Documentation/perf.data-file-format.txt of the kernel. Pipe mode and compressed records are not
// read.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perfkit/sample.h"
#include "src/base/cursor.h"

namespace perfkit::testing {

class PerfData {
 public:
  // Returns nullopt if `path` is no such file.
  static std::optional<PerfData> Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    PerfData data;
    data.bytes_.assign(std::istreambuf_iterator<char>(in), {});
    if (!data.ParseHeader()) return std::nullopt;
    return data;
  }

  // Returns the records, one after the other.
  Bytes records() const { return std::as_bytes(std::span(bytes_)).subspan(records_offset_, records_size_); }
  uint64_t records_offset() const { return records_offset_; }
  // Returns the layout of the event that wrote `record`; all events have their ids at the same offset.
  const SampleLayout& LayoutOf(const RawRecord& record) const {
    if (layouts_.size() == 1) return layouts_.front();
    const std::optional<uint64_t> id = layouts_.front().IdOf(record);
    const auto found = id ? by_id_.find(*id) : by_id_.end();
    return layouts_[found == by_id_.end() ? 0 : found->second];
  }
  size_t events() const { return layouts_.size(); }

 private:
  struct Section {
    uint64_t offset, size;
  };

  bool ParseHeader() {
    const Bytes file = std::as_bytes(std::span(bytes_));
    const auto attr_size = base::ReadAt<uint64_t>(file, 16);
    const auto attrs = base::ReadAt<Section>(file, 24), data = base::ReadAt<Section>(file, 40);
    if (bytes_.substr(0, 8) != "PERFILE2" || !attr_size || !attrs || !data) return false;
    if (!base::Slice(file, data->offset, data->size) || *attr_size < 64 + sizeof(Section)) return false;
    records_offset_ = data->offset;
    records_size_ = data->size;
    for (uint64_t at = 0; at + *attr_size <= attrs->size; at += *attr_size) {
      if (!ParseAttr(file, attrs->offset + at, *attr_size)) return false;
    }
    return !layouts_.empty();
  }

  // Parses a perf_event_attr and the location of its ids.
  bool ParseAttr(Bytes file, uint64_t at, uint64_t size) {
    const uint64_t members = size - sizeof(Section);
    const auto word = [&](uint64_t offset) -> uint64_t {
      return offset + 8 <= members ? base::ReadAt<uint64_t>(file, at + offset).value_or(0) : 0;
    };
    const auto ids = base::ReadAt<Section>(file, at + members);
    if (!ids) return false;
    layouts_.emplace_back(AttrBits{.sample_type = word(24),
                                   .read_format = word(32),
                                   .branch_sample_type = word(72),
                                   .regs_user = word(80),
                                   .regs_intr = word(96),
                                   .sample_id_all = (word(40) >> 18 & 1) != 0});
    for (uint64_t i = 0; i + 8 <= ids->size; i += 8) {
      const auto id = base::ReadAt<uint64_t>(file, ids->offset + i);
      if (!id) return false;
      by_id_[*id] = layouts_.size() - 1;
    }
    return true;
  }

  std::string bytes_;
  uint64_t records_offset_ = 0, records_size_ = 0;
  std::vector<SampleLayout> layouts_;
  std::map<uint64_t, size_t> by_id_;
};

}  // namespace perfkit::testing

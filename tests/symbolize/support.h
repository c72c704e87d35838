// Mappings for a Symbolizer, written as the kernel writes them; and programs, made by the compiler that is here.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>

#include "perfkit/sample.h"
#include "perfkit/symbolizer.h"
#include "src/elf/image.h"
#include "src/sys/map_file.h"
#include "tests/support/record_builder.h"
#include "tests/support/run.h"

namespace perfkit::testing {

inline constexpr uint64_t kPage = 4096;

// Gives the symbolizer one record.
inline bool Feed(Symbolizer& symbolizer, const std::string& bytes) {
  static const SampleLayout layout{AttrBits{}};
  LinearReader reader(std::as_bytes(std::span(bytes)));
  RawRecord record;
  return reader.Next(record) && symbolizer.Add(record, layout);
}

struct Mapped {
  uint32_t pid = 1;
  uint64_t address = 0, length = 0, offset = 0;
  std::string name;
  uint64_t inode = 0;
  uint16_t misc = 2;
};

inline std::string MmapBytes(const Mapped& map) {
  RecordBuilder record;
  record.U32(map.pid).U32(map.pid).U64(map.address).U64(map.length).U64(map.offset);
  record.U32(8).U32(1).U64(map.inode).U64(0).U32(5).U32(2).Text(map.name);
  return record.Finish(RecordType::kMmap2, map.misc);
}

// Maps the code of the file at `path`, as if it had been loaded at `bias`, into process `pid`. Nothing of its inode.
inline void MapCode(Symbolizer& symbolizer, const std::string& path, uint64_t bias, uint32_t pid = 1) {
  const absl::StatusOr<sys::Mapping> file = sys::MapFile(path);
  if (!file.ok()) return;
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  for (uint32_t i = 0; image.ok() && i < image->segment_count(); ++i) {
    const elf::Segment segment = *image->segment(i);
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    const uint64_t begin = segment.address / kPage * kPage;
    const uint64_t end = (segment.address + segment.file_bytes + kPage - 1) / kPage * kPage;
    Feed(symbolizer, MmapBytes({.pid = pid,
                                .address = bias + begin,
                                .length = end - begin,
                                .offset = segment.offset / kPage * kPage,
                                .name = path}));
  }
}

// Compiles C text to `path`. Whether that worked: not every machine has every compiler and linker.
inline bool Compile(const std::string& compiler, const std::string& text, const std::string& path) {
  const std::string source = path + ".c";
  if (FILE* const file = fopen(source.c_str(), "w")) {
    fputs(text.c_str(), file);
    fclose(file);
  }
  return RunCommand(compiler + " -x c " + source + " -o " + path).exit_code == 0;
}

}  // namespace perfkit::testing

// Opens a module's file and makes sure that it is the one that was mapped.
#include "src/proc/module_file.h"

#include <elf.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/elf/notes.h"
#include "src/proc/maps.h"
#include "src/sys/kernel.h"
#include "src/sys/map_file.h"

namespace perfkit::proc {
namespace {

// The file as the process sees it, which may live in another root; or as we do.
absl::StatusOr<sys::Mapping> MapModule(const ModuleId& id, const std::string& proc) {
  absl::Status why = absl::NotFoundError(absl::StrFormat("there is no %s", id.path));
  const std::string theirs = absl::StrFormat("%s/%d/root%s", proc, id.pid, id.path);
  for (const std::string& path : {theirs, id.path}) {
    uint64_t inode = 0;
    absl::StatusOr<sys::Mapping> file = sys::MapFile(path, &inode);
    if (file.ok() && (id.inode == 0 || inode == id.inode)) return file;
    why = file.ok() ? absl::Status(absl::StatusCode::kFailedPrecondition,
                                   absl::StrFormat("%s is another file now than the one that ran", id.path))
                    : file.status();
  }
  return why;
}

absl::Status CheckBuild(const ModuleId& id, const elf::Image& image) {
  if (id.build_id.empty()) return absl::OkStatus();
  const base::Bytes found = elf::BuildId(image).value_or(base::Bytes());
  if (std::string_view(reinterpret_cast<const char*>(found.data()), found.size()) == id.build_id) {
    return absl::OkStatus();
  }
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      absl::StrFormat("%s is of another build now than the one that ran", id.path));
}

}  // namespace

absl::StatusOr<ModuleFile> ModuleFile::Open(const ModuleId& id, const std::string& proc) {
  if (id.is_file()) return OpenFile(id, proc);
  if (id.is_vdso()) return OpenVdso(id);
  return absl::NotFoundError("memory of no file: code that was made while the program ran");
}

absl::StatusOr<ModuleFile> ModuleFile::OpenFile(const ModuleId& id, const std::string& proc) {
  absl::StatusOr<sys::Mapping> file = MapModule(id, proc);
  if (!file.ok()) return file.status();
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  if (!image.ok()) {
    return absl::Status(image.status().code(),
                        absl::StrFormat("%s is %s", id.path, std::string(image.status().message())));
  }
  if (absl::Status build = CheckBuild(id, *image); !build.ok()) return build;
  return ModuleFile(*std::move(file), *image);
}

absl::StatusOr<ModuleFile> ModuleFile::OpenVdso(const ModuleId& id) {
  const absl::StatusOr<std::string> maps = ReadMaps(sys::kernel().getpid());
  if (!maps.ok()) return maps.status();
  absl::StatusOr<elf::Image> image = absl::NotFoundError("this process has no vDSO");
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<MapLine> map = ParseMapLine(line);
    if (!map || map->path != id.path || !map->readable) return;
    image = elf::Image::Parse({reinterpret_cast<const std::byte*>(map->begin), map->end - map->begin});
  });
  if (!image.ok()) return image.status();
  return ModuleFile(sys::Mapping(), *image);
}

LoadedCode::LoadedCode(const elf::Image& image) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> segment = image.segment(i);
    if (segment && segment->type == PT_LOAD && (segment->flags & PF_X) != 0) segments_.push_back(*segment);
  }
}

std::optional<uint64_t> LoadedCode::AddressOf(uint64_t offset) const {
  for (const elf::Segment& segment : segments_) {
    if (offset < segment.offset || offset - segment.offset >= segment.file_bytes) continue;
    return segment.address + (offset - segment.offset);
  }
  return std::nullopt;
}

}  // namespace perfkit::proc

// Opens a module's file and checks that it is the one that was mapped.
#include "src/proc/module_file.h"

#include <elf.h>

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/elf/notes.h"
#include "src/proc/maps.h"
#include "src/sys/kernel.h"
#include "src/sys/map_file.h"

namespace perfkit::proc {
namespace {

// File systems number their files independently, so containers have files with the same path and inode.
bool IsOtherFile(const ModuleId& id, const sys::FileStamp& stamp) {
  const bool elsewhere = id.device != 0 && stamp.device != 0 && stamp.device != id.device;
  return id.inode != 0 && (stamp.inode != id.inode || elsewhere);
}

// Changes of the name and of the rights count, too: refusing an unchanged file is better than another file's symbols. A
// deleted file is always changed in this sense, so there only changes of the contents count. The kernel stamps files
// with the time of the last tick (current_time in fs/inode.c), so a change may be up to a tick later than its stamp.
bool IsChangedSince(int64_t time_ns, const sys::FileStamp& stamp) {
  constexpr int64_t kLongestTickNs = 10'000'000;  // CONFIG_HZ=100
  return (stamp.deleted ? stamp.written_ns : stamp.changed_ns) + kLongestTickNs > time_ns;
}

// Returns OK if the file can be the one that was mapped, as far as its metadata shows.
absl::Status CheckFile(const ModuleId& id, const sys::FileStamp& stamp) {
  if (IsOtherFile(id, stamp)) {
    return absl::FailedPreconditionError(absl::StrFormat("%s is another file now than the one that ran", id.path));
  }
  if (id.build_id.empty() && id.mapped_ns != 0 && IsChangedSince(id.mapped_ns, stamp)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s was changed after it was mapped, and has no build-id that would tell whether it is what ran. Remedy: link "
        "with -Wl,--build-id.",
        id.path));
  }
  return absl::OkStatus();
}

std::array<std::string, 2> PathsOf(const ModuleId& id, const std::string& proc) {
  return {absl::StrFormat("%s/%d/root%s", proc, id.pid, id.path), id.path};
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

ModuleId ModuleId::Of(const MapLine& map, pid_t pid) {
  return {.path = std::string(map.path.empty() ? "//anon" : map.path),
          .inode = map.inode,
          .pid = pid,
          .device = DeviceOf(map.device_major, map.device_minor),
          .begin = map.begin,
          .end = map.end};
}

absl::StatusOr<ModuleFile> ModuleFile::Open(const ModuleId& id, const std::string& proc) {
  if (id.uncertain) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s may have been changed between two mappings, and has no build-id that would tell which "
                        "contents ran. Remedy: "
                        "link with -Wl,--build-id.",
                        id.path));
  }
  if (id.is_file()) return OpenFile(id, proc);
  if (id.is_vdso()) return OpenVdso(id);
  return absl::NotFoundError("memory of no file: code that was made while the program ran");
}

absl::StatusOr<ModuleFile> ModuleFile::OpenAt(const std::string& path, const ModuleId& id) {
  sys::FileStamp stamp;
  absl::StatusOr<sys::Mapping> file = sys::MapFile(path, &stamp);
  if (!file.ok()) return file.status();
  if (absl::Status same = CheckFile(id, stamp); !same.ok()) return same;
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  if (!image.ok()) {
    return absl::Status(image.status().code(),
                        absl::StrFormat("%s is %s", id.path, std::string(image.status().message())));
  }
  if (absl::Status build = CheckBuild(id, *image); !build.ok()) return build;
  return ModuleFile(*std::move(file), *image);
}

// Opens the file at its path as the process sees it (it may have another root), or as this process sees it, or by its
// mapping. If none is the right file, returns the first error about a different file, or else the error of its path.
absl::StatusOr<ModuleFile> ModuleFile::OpenFile(const ModuleId& id, const std::string& proc) {
  absl::Status why;
  for (const std::string& path : PathsOf(id, proc)) {
    absl::StatusOr<ModuleFile> file = OpenAt(path, id);
    if (file.ok()) return file;
    // A different file at one path says more than no file at the other.
    if (!absl::IsFailedPrecondition(why)) why = file.status();
  }
  if (id.end == 0) return why;
  absl::StatusOr<ModuleFile> mapped =
      OpenAt(absl::StrFormat("%s/%d/map_files/%x-%x", proc, id.pid, id.begin, id.end), id);
  return mapped.ok() ? std::move(mapped) : why;
}

absl::StatusOr<ModuleFile> ModuleFile::OpenVdso(const ModuleId& id) {
  const absl::StatusOr<std::string> maps = ReadMaps(sys::kernel().getpid());
  if (!maps.ok()) return maps.status();
  absl::StatusOr<elf::Image> image = absl::NotFoundError("this process has no vDSO");
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<MapLine> map = ParseMapLine(line);
    if (!map || map->path != id.path || !map->readable) return;
    // All 64-bit processes have the kernel's one vDSO, so this process's own is read in place.
    image = elf::Image::Parse({reinterpret_cast<const std::byte*>(map->begin), map->end - map->begin});
  });
  if (!image.ok()) return image.status();
  return ModuleFile(sys::Mapping(), *image);
}

FileState StateOf(const ModuleId& id, const std::string& proc) {
  for (const std::string& path : PathsOf(id, proc)) {
    const std::optional<sys::FileStamp> stamp = sys::StampOf(path);
    if (!stamp || IsOtherFile(id, *stamp)) continue;
    return IsChangedSince(id.mapped_ns, *stamp) ? FileState::kChanged : FileState::kUnchanged;
  }
  return FileState::kGone;
}

std::string ReadBuildId(const ModuleId& id, const std::string& proc) {
  if (!id.is_file()) return "";
  const absl::StatusOr<ModuleFile> file = ModuleFile::Open(id, proc);
  const std::optional<base::Bytes> found = file.ok() ? elf::BuildId(file->image()) : std::nullopt;
  return found ? std::string(reinterpret_cast<const char*>(found->data()), found->size()) : "";
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

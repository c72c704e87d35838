// Opens a module's file, makes sure that it is the one that was mapped, and takes its symbols; then lets go of it.
#include "src/symbolize/module.h"

#include <elf.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/elf/notes.h"
#include "src/proc/maps.h"
#include "src/symbolize/debug_file.h"
#include "src/symbolize/elf_functions.h"
#include "src/sys/kernel.h"
#include "src/sys/map_file.h"

namespace perfkit::symbolize {
namespace {

// The file as the process sees it, which may live in another root; or as we do.
absl::StatusOr<sys::Mapping> OpenModule(const ModuleId& id, const std::string& proc) {
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

}  // namespace

const absl::Status& Module::Load(const std::string& proc, const std::string& debug_root) {
  if (loaded_) return status_;
  loaded_ = true;
  if (is_file()) {
    status_ = LoadFile(proc, debug_root);
  } else if (is_vdso()) {
    status_ = LoadVdso();
  } else {
    status_ = absl::NotFoundError("memory of no file: code that was made while the program ran");
  }
  return status_;
}

absl::Status Module::LoadFile(const std::string& proc, const std::string& debug_root) {
  const absl::StatusOr<sys::Mapping> file = OpenModule(id_, proc);
  if (!file.ok()) return file.status();
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  if (!image.ok()) {
    return absl::Status(image.status().code(),
                        absl::StrFormat("%s is %s", id_.path, std::string(image.status().message())));
  }
  if (absl::Status build = CheckBuild(*image); !build.ok()) return build;
  const std::optional<DebugFile> debug = FindDebugFile(*image, id_.path, debug_root);
  if (!debug) return TakeSymbols(*image, nullptr), absl::OkStatus();
  debug_path_ = debug->path;
  const absl::StatusOr<elf::Image> debug_image = elf::Image::Parse(debug->bytes.bytes());
  TakeSymbols(*image, debug_image.ok() ? &*debug_image : nullptr);
  return absl::OkStatus();
}

absl::Status Module::CheckBuild(const elf::Image& image) const {
  if (id_.build_id.empty()) return absl::OkStatus();
  const base::Bytes found = elf::BuildId(image).value_or(base::Bytes());
  if (std::string_view(reinterpret_cast<const char*>(found.data()), found.size()) == id_.build_id) {
    return absl::OkStatus();
  }
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      absl::StrFormat("%s is of another build now than the one that ran", id_.path));
}

// The kernel's own shared library, which is in no file: all processes have the same, so that ours will do.
absl::Status Module::LoadVdso() {
  const absl::StatusOr<std::string> maps = proc::ReadMaps(sys::kernel().getpid());
  if (!maps.ok()) return maps.status();
  absl::Status status = absl::NotFoundError("this process has no vDSO");
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (!map || map->path != name() || !map->readable) return;
    const auto* const bytes = reinterpret_cast<const std::byte*>(map->begin);
    const absl::StatusOr<elf::Image> image = elf::Image::Parse({bytes, map->end - map->begin});
    status = image.status();
    if (image.ok()) TakeSymbols(*image, nullptr);
  });
  return status;
}

// Names take no more room than the files that they are from.
void Module::TakeSymbols(const elf::Image& image, const elf::Image* debug) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> segment = image.segment(i);
    if (segment && segment->type == PT_LOAD && (segment->flags & PF_X) != 0) code_.push_back(*segment);
  }
  SymbolTableBuilder builder(image.bytes().size() + (debug == nullptr ? 0 : debug->bytes().size()));
  AddFunctions(image, builder);
  if (debug != nullptr) AddFunctions(*debug, builder);
  AddPltStubs(image, builder);
  table_ = std::move(builder).Build();
}

std::optional<uint64_t> Module::AddressOf(uint64_t offset) const {
  for (const elf::Segment& segment : code_) {
    if (offset < segment.offset || offset - segment.offset >= segment.file_bytes) continue;
    return segment.address + (offset - segment.offset);
  }
  return std::nullopt;
}

}  // namespace perfkit::symbolize

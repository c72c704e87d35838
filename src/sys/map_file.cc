// Opens, measures and maps a file.
#include "src/sys/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

absl::StatusOr<Mapping> MapFile(const std::string& path, FileStamp* stamp) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const OwnedFd fd(kernel().open(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (!fd) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot open %s", path));
  struct stat info;
  if (kernel().fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("cannot look at %s", path));
  }
  if (stamp != nullptr) {
    *stamp = {.inode = info.st_ino,
              .changed_ns = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec,
              .deleted = info.st_nlink == 0};
  }
  if (!S_ISREG(info.st_mode) || info.st_size <= 0) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("%s is %s", path, S_ISREG(info.st_mode) ? "empty" : "no regular file"));
  }
  std::optional<Mapping> mapping = Mapping::ReadOnly(fd.get(), static_cast<size_t>(info.st_size));
  if (!mapping) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot map %s", path));
  return *std::move(mapping);
}

}  // namespace perfkit::sys

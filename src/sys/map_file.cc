// Opens, measures and maps a file, or reads it.
#include "src/sys/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/sys/fd.h"

namespace perfkit::sys {
namespace {

// Returns true if only root and this user can shorten the file. A group that may write to root's file is refused; one
// that may write to this user's own file is trusted by the user.
bool IsOurs(const struct stat& info) {
  const uid_t user = kernel().geteuid();
  const mode_t others = S_IWOTH | (user == 0 ? S_IWGRP : 0);
  return (info.st_uid == 0 || info.st_uid == user) && (info.st_mode & others) == 0;
}

// Of include/uapi/linux/magic.h, whose older versions lack some.
constexpr uint64_t kOverlayfs = 0x794c7630, kBtrfs = 0x9123683e, kFuse = 0x65735546;

int64_t NsOf(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// `system` is nullptr if it is not known.
FileStamp StampOf(const struct stat& info, const struct statfs* system) {
  FileStamp stamp{.inode = info.st_ino,
                  .changed_ns = NsOf(info.st_ctim),
                  .written_ns = NsOf(info.st_mtim),
                  .deleted = info.st_nlink == 0};
  const uint64_t type = system == nullptr ? kOverlayfs : static_cast<uint64_t>(system->f_type);
  if (type == kOverlayfs || type == kBtrfs || type == kFuse) return stamp;
  stamp.device = uint64_t{major(info.st_dev)} << 32 | minor(info.st_dev);
  return stamp;
}

absl::StatusOr<Mapping> ReadWhole(int fd, uint64_t size, const std::string& path) {
  if (size > kMaxReadBytes) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%s has %d MiB, which is too much to be read. Remedy: let only root or this user write to it, so "
        "that it can be mapped",
        path, size >> 20));
  }
  std::optional<Mapping> copy = Mapping::Anonymous(size);
  if (!copy) return absl::ErrnoToStatus(errno, absl::StrFormat("no memory for %s", path));
  for (uint64_t done = 0; done < size;) {
    const ssize_t got = RetryInterrupted([&] { return kernel().read(fd, copy->data() + done, size - done); });
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot read %s", path));
    if (got == 0) {
      return absl::InvalidArgumentError(absl::StrFormat("%s was cut short while it was read", path));
    }
    done += static_cast<uint64_t>(got);
  }
  return *std::move(copy);
}

}  // namespace

std::optional<FileStamp> StampOf(const std::string& path) {
  struct stat info;
  struct statfs system;
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return StampOf(info, ::statfs(path.c_str(), &system) == 0 ? &system : nullptr);
}

absl::StatusOr<Mapping> MapFile(const std::string& path, FileStamp* stamp) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const OwnedFd fd(kernel().open(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (!fd) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot open %s", path));
  struct stat info;
  if (kernel().fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("cannot look at %s", path));
  }
  struct statfs system;
  if (stamp != nullptr) *stamp = StampOf(info, ::fstatfs(fd.get(), &system) == 0 ? &system : nullptr);
  if (!S_ISREG(info.st_mode) || info.st_size <= 0) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("%s is %s", path, S_ISREG(info.st_mode) ? "empty" : "no regular file"));
  }
  if (!IsOurs(info)) return ReadWhole(fd.get(), static_cast<uint64_t>(info.st_size), path);
  std::optional<Mapping> mapping = Mapping::ReadOnly(fd.get(), static_cast<size_t>(info.st_size));
  if (!mapping) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot map %s", path));
  return *std::move(mapping);
}

}  // namespace perfkit::sys

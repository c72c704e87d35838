// Looks at a file by O_PATH, which opens nothing (man open), before it opens the file.
#include "src/sys/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_format.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"
#include "src/sys/new_file.h"

namespace perfkit::sys {
namespace {

constexpr std::string_view kUseAnother = "name a regular file, or a path at which there is nothing yet";

const char* KindName(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFBLK:
    case S_IFCHR: return "a device";
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a FIFO";
    case S_IFLNK: return "a symbolic link";
    case S_IFSOCK: return "a socket";
    default: return "something else";
  }
}

}  // namespace

absl::Status CheckRegular(const OwnedFd& fd, const std::string& path, std::string_view remedy) {
  struct stat about {};
  if (kernel().fstat(fd.get(), &about) != 0) return FileError("look at", path);
  if (S_ISREG(about.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is %s, not a regular file. Remedy: %s.", path, KindName(about.st_mode), remedy));
}

absl::StatusOr<OwnedFd> OpenRegularFile(const std::string& path, int flags) {
  {
    const OwnedFd there(kernel().open(path.c_str(), O_PATH));
    if (!there && errno != ENOENT) return FileError("open", path);
    if (there) {
      if (absl::Status status = CheckRegular(there, path, kUseAnother); !status.ok()) return status;
    }
  }
  OwnedFd fd(kernel().open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY));
  if (!fd) return FileError("open", path);
  // Something else may have taken its place meanwhile.
  if (absl::Status status = CheckRegular(fd, path, kUseAnother); !status.ok()) return status;
  return fd;
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path) {
  const absl::StatusOr<OwnedFd> fd = OpenRegularFile(path, O_RDONLY);
  return fd.ok() ? ReadToEnd(*fd, path) : fd.status();
}

}  // namespace perfkit::sys

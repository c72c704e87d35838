// flock, read, edit, truncate, write.
#include "src/sys/edit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "src/sys/fd.h"
#include "src/sys/files.h"

namespace perfkit::sys {
namespace {

absl::Status FileError(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrFormat("cannot %s %s", what, path));
}

int LockPatiently(int fd) {
  int result;
  do {
    result = ::flock(fd, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  return result;
}

absl::Status WriteAll(int fd, const std::string& path, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = kernel().write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return FileError("write", path);
    done += static_cast<size_t>(wrote);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EditFile(const std::string& path, const FileEdit& edit) {
  const OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) return FileError("open", path);
  if (LockPatiently(fd.get()) != 0) return FileError("lock", path);
  const absl::StatusOr<std::string> old = ReadFile(path);
  if (!old.ok()) return old.status();
  const absl::StatusOr<std::string> edited = edit(*old);
  if (!edited.ok()) return edited.status();
  if (::ftruncate(fd.get(), 0) != 0) return FileError("truncate", path);
  return WriteAll(fd.get(), path, *edited);
}

}  // namespace perfkit::sys

// Opens, checks what was opened, and reads on.
#include "src/sys/owned_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/sys/fd.h"
#include "src/sys/read.h"

namespace perfkit::sys {

absl::StatusOr<FileTail> ReadOwnedTail(const std::string& path, std::span<const uid_t> owners, uint64_t offset,
                                       size_t most) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const OwnedFd fd(kernel().open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW));
  if (!fd) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot open %s", path));
  struct stat info;
  if (kernel().fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("cannot look at %s", path));
  }
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(path + " is no regular file");
  if (std::find(owners.begin(), owners.end(), info.st_uid) == owners.end()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is owned by uid %d, not by the process, this user or root", path, info.st_uid));
  }
  const auto end = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  const uint64_t changed_ns =
      static_cast<uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(info.st_ctim.tv_nsec);
  FileTail tail{.text = {}, .inode = info.st_ino, .size = end, .changed_ns = changed_ns};
  if (end <= offset || ::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) return tail;
  tail.text.resize(std::min<uint64_t>(end - offset, most));
  size_t got = 0;
  while (got < tail.text.size()) {
    const ssize_t more = Read(fd.get(), tail.text.data() + got, tail.text.size() - got);
    if (more < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot read %s", path));
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  tail.text.resize(got);
  return tail;
}

}  // namespace perfkit::sys

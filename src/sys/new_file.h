// A file that is written aside and takes its name when it is whole.
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

// Repeats a call that a signal interrupted.
template <class Call>
auto RetryInterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// The Status of errno: "cannot <what> <path>".
absl::Status FileError(const char* what, const std::string& path);

// Writes all of `bytes`. The Status names `path`.
absl::Status WriteAll(int fd, const std::string& path, std::string_view bytes);

// Readers of `path` find what was there before or, after Commit, the new file as a whole. Moves, never copies.
class NewFile {
 public:
  // Creates the file `aside`, which must be in the folder of `path`. `flags`: for open(2), beside O_WRONLY | O_CREAT.
  static absl::StatusOr<NewFile> Create(std::string aside, std::string path, int flags);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  // Removes the file aside if it was not committed.
  ~NewFile();

  absl::Status SetMode(mode_t mode);
  absl::Status Write(std::string_view bytes);
  // Renames the file to `path`.
  absl::Status Commit();

 private:
  NewFile(OwnedFd fd, std::string aside, std::string path);

  OwnedFd fd_;
  std::string aside_;  // "" once it is committed
  std::string path_;
};

// Takes the next bytes of a file.
using ByteSink = absl::FunctionRef<absl::Status(std::string_view bytes)>;

// Calls `write` once, and makes what it hands to the sink the file `path`: aside, renamed when it is whole. A failure
// leaves what was there. What is no regular file (a pipe, a terminal) is written directly.
absl::Status WriteFile(const std::string& path, absl::FunctionRef<absl::Status(ByteSink)> write);

}  // namespace perfkit::sys

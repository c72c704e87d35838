// A file that is written under a temporary name, and gets its own name once it is complete.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

// Returns the Status of errno: "cannot <what> <path>".
absl::Status FileError(const char* what, const std::string& path);

// Returns `status`, with which a file at `path` could not be made or written, with its remedy if the folder does not
// exist or this user has no right.
absl::Status WithFolderRemedy(const absl::Status& status, const std::string& path);

// Writes all of `bytes`. On an error, the Status names `path`. Delivers no SIGPIPE or SIGXFSZ.
absl::Status WriteAll(int fd, const std::string& path, std::string_view bytes);

// Readers of `path` find the previous file or, after Commit, the complete new one. Movable, not copyable.
class NewFile {
 public:
  // Creates the file `aside`, which must be in the folder of `path`. `flags` are for open(2), in addition to O_WRONLY |
  // O_CREAT.
  static absl::StatusOr<NewFile> Create(std::string aside, std::string path, int flags);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  // Removes the file `aside` if it was not committed.
  ~NewFile();

  absl::Status SetMode(mode_t mode);
  absl::Status Write(std::string_view bytes);
  // Renames the file to `path`.
  absl::Status Commit();

 private:
  NewFile(OwnedFd fd, std::string aside, std::string path);

  OwnedFd fd_;
  std::string aside_;  // "" after Commit.
  std::string path_;
};

// Receives the next bytes of a file.
using ByteSink = absl::FunctionRef<absl::Status(std::string_view bytes)>;

// Calls `write` once, and makes the bytes that it gives to the sink the file `path`, which is renamed into place once
// it is complete. On a failure, the previous file stays; the new one has its permissions. A symbolic link stays one:
// the file that it names is replaced, or made. A special file (a pipe, a terminal), and a link to an open descriptor
// (/dev/stdout), are written directly.
absl::Status WriteFile(const std::string& path, absl::FunctionRef<absl::Status(ByteSink)> write);

}  // namespace perfkit::sys

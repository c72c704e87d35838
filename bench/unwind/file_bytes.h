// A whole file as bytes, mapped.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <span>
#include <string>
#include <utility>

namespace bench {

// Unmaps in its destructor. Movable, not copyable.
class FileBytes {
 public:
  // Returns nullopt if the file can't be opened or is empty; errno says why. `ahead`: reads all of it into memory at
  // once.
  static std::optional<FileBytes> Map(const std::string& path, bool ahead = false) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    struct stat status {};
    const bool known = fstat(fd, &status) == 0;
    const auto size = static_cast<size_t>(status.st_size);
    void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | (ahead ? MAP_POPULATE : 0), fd, 0);
    close(fd);
    if (!known || data == MAP_FAILED) return std::nullopt;
    return FileBytes({static_cast<const std::byte*>(data), size});
  }
  FileBytes(FileBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  FileBytes& operator=(FileBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~FileBytes() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit FileBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace bench

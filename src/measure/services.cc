// Files and the host's name, by src/sys.
#include "src/measure/services.h"

#include "src/base/text.h"
#include "src/sys/edit_file.h"
#include "src/sys/files.h"

namespace perfkit::detail {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) { return sys::ReadRegularFile(path); }

absl::Status EditTextFile(const std::string& path,
                          const std::function<absl::StatusOr<std::string>(const std::string& text)>& edit) {
#include "src/sys/regular_file.h"
  return sys::EditFile(path, edit);
}

std::string HostName() {
  const auto name = sys::ReadFile("/proc/sys/kernel/hostname");
  return name.ok() ? std::string(base::Trim(*name)) : "";
}

}  // namespace perfkit::detail

// The formats of this component, as WriteProfile finds them.
#include <catch2/catch.hpp>
#include <filesystem>

#include "perfkit/profile_writer.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/temp_folder.h"

namespace perfkit::profile {
namespace {

TEST_CASE("who links the component has its formats, and each of their extensions writes a file", "[exporters]") {
  const testing::TempFolder folder;
  size_t formats = 0;
  for (const ProfileFormat& format : ProfileFormats()) {
    ++formats;
    for (const std::string_view extension : format.extensions) {
      if (extension.empty()) continue;
      const std::string path = folder.path() + "/work" + std::string(extension);
      INFO(path);
      CHECK(WriteProfile(SampleProfile(), path) == absl::OkStatus());
      CHECK(std::filesystem::file_size(path) > 0);
    }
  }
  CHECK(formats >= 2);
}

}  // namespace
}  // namespace perfkit::profile

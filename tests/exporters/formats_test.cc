// The formats of this component, as WriteProfile finds them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <string_view>

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

TEST_CASE("a profile without events is a file in each format", "[exporters]") {
  const testing::TempFolder folder;
  for (const ProfileFormat& format : ProfileFormats()) {
    INFO(format.extensions[0]);
    CHECK(WriteProfile(Profile(), folder.path() + "/empty" + std::string(format.extensions[0])) == absl::OkStatus());
  }
}

TEST_CASE("progress is 1 only if the file was written", "[exporters]") {
  const testing::TempFolder folder;
  for (const ProfileFormat& format : ProfileFormats()) {
    const std::string name = "work" + std::string(format.extensions[0]);
    std::filesystem::create_symlink("/dev/full", folder.path() + "/full-" + name);
    double done = 0;
    WriteOptions options;
    options.progress = [](double now, void* to) { *static_cast<double*>(to) = now; };
    options.progress_argument = &done;
    INFO(name);
    CHECK_FALSE(WriteProfile(SampleProfile(), folder.path() + "/full-" + name, options).ok());
    CHECK(done < 1);
    CHECK(WriteProfile(SampleProfile(), folder.path() + "/" + name, options).ok());
    CHECK(done == 1);
  }
}

}  // namespace
}  // namespace perfkit::profile

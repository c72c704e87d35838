// The file of a slow frame under faults.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "perfkit/exporters.h"
#include "perfkit/profile_writer.h"
#include "tests/exporters/hitch_profile.h"
#include "tests/support/fault_table.h"
#include "tests/support/temp_folder.h"

namespace perfkit::exporters {
namespace {

std::string TextOfFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("a file of a slow frame is the old one, or the new one and OK", "[faults][slow_frame]") {
  const testing::TempFolder folder;
  const Profile profile = testing::HitchProfile().Make();
  const SlowFrame frame = testing::HitchOf(profile);
  const auto use = [&](const char* name, const std::string& file) {
    const std::string path = folder.path() + file, whole = folder.path() + "/whole" + file.substr(file.find('.'));
    REQUIRE(WriteSlowFrame(profile, frame, whole) == absl::OkStatus());
    testing::RunFaults(name, [&](testing::Faults& faults) {
      folder.Write(file, "old");
      faults.Begin();
      const absl::Status written = WriteSlowFrame(profile, frame, path);
      faults.End();
      CHECK(TextOfFile(path) == (written.ok() ? TextOfFile(whole) : "old"));
      CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
      return written;
    });
    std::filesystem::remove(path);
    std::filesystem::remove(whole);
  };
  use("`WriteSlowFrame`, HTML", "/hitch.html");
  use("`WriteSlowFrame`, Perfetto", "/hitch.pftrace");
}

}  // namespace
}  // namespace perfkit::exporters

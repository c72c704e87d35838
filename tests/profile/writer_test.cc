// Files of profiles: by extension, whole or not at all.
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "perfkit/profile_difference.h"
#include "perfkit/profile_writer.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/temp_folder.h"
#include "tests/sys/in_child.h"

namespace perfkit::profile {
namespace {

using testing::FakeKernel;
using testing::TempFolder;

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ptrdiff_t FilesIn(const TempFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST_CASE("a profile's file has the format of its extension", "[profile][writer]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/work.folded";
  CHECK(WriteProfile(SampleProfile(), path) == absl::OkStatus());
  CHECK_THAT(TextOf(path), Catch::Contains(";_start;main;"));
  CHECK(FilesIn(folder) == 1);
}

TEST_CASE("an extension that no format has is refused with those that there are", "[profile][writer]") {
  const TempFolder folder;
  const absl::Status status = WriteProfile(SampleProfile(), folder.path() + "/work.doc");
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains("work.doc") && Catch::Contains(".folded"));
  const absl::Status exporters = WriteProfile(SampleProfile(), folder.path() + "/work.pb.gz");
  CHECK(exporters.code() == absl::StatusCode::kUnimplemented);
  CHECK_THAT(std::string(exporters.message()), Catch::Contains("perfkit::exporters"));
  CHECK(FilesIn(folder) == 0);
}

TEST_CASE("a slow frame is shown by exporters only, and without them the remedy is to link them", "[profile][writer]") {
  const TempFolder folder;
  const absl::Status text = WriteSlowFrame(SampleProfile(), SlowFrame{}, folder.path() + "/hitch.txt");
  CHECK(text.code() == absl::StatusCode::kUnimplemented);
  CHECK_THAT(std::string(text.message()), Catch::Contains("perfkit::exporters") && Catch::EndsWith("Remedy: link it"));
  CHECK(FilesIn(folder) == 0);
}

TEST_CASE("a difference is a file of text, and no other format of the core's shows one", "[profile][writer]") {
  const TempFolder folder;
  const auto difference = Difference(SampleProfile(), SampleProfile());
  REQUIRE(difference.ok());
  CHECK(WriteDifference(*difference, folder.path() + "/change.txt") == absl::OkStatus());
  CHECK(TextOf(folder.path() + "/change.txt") == FormatReport(*difference));
  const absl::Status folded = WriteDifference(*difference, folder.path() + "/change.folded");
  CHECK(folded.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(folded.message()), Catch::Contains("does not show a difference") && Catch::Contains(".txt"));
  CHECK(WriteDifference(*difference, folder.path() + "/change.html").code() == absl::StatusCode::kUnimplemented);
  CHECK_THAT(difference->before_accounting, Catch::StartsWith("# app: 200.0 ms, 2 threads\n"));
  CHECK(FilesIn(folder) == 1);
}

TEST_CASE("a difference whose nodes are no tree is not written", "[profile][writer]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/change.txt";
  CHECK(WriteDifference({}, path) == absl::OkStatus());  // no nodes
  const auto difference = Difference(SampleProfile(), SampleProfile());
  REQUIRE(difference.ok());
  using Node = ProfileDifference::Node;
  const auto is_refused = [&](void (*change)(Node&)) {
    ProfileDifference changed = *difference;
    change(changed.nodes[0]);
    return WriteDifference(changed, path).code() == absl::StatusCode::kInvalidArgument;
  };
  CHECK(is_refused([](Node& root) { root.first_child = 0; }));
  CHECK(is_refused([](Node& root) { root.first_child = UINT32_MAX; }));
  CHECK(is_refused([](Node& root) { root.children = 1'000'000; }));
  CHECK(is_refused([](Node& root) { root.function = 0; }));
}

TEST_CASE("a profile that does not fit together is not written", "[profile][writer]") {
  const TempFolder folder;
  Profile profile = SampleProfile();
  profile.samples[0].thread = 99;
  CHECK(WriteProfile(profile, folder.path() + "/work.folded").code() == absl::StatusCode::kInvalidArgument);
  CHECK(FilesIn(folder) == 0);
}

TEST_CASE("whichever call fails, the file is the old one or the new one, and nothing is left beside it",
          "[profile][writer]") {
  const Profile profile = SampleProfile();
  for (const int error : {EIO, ENOSPC, EACCES, EINTR}) {
    for (uint64_t n = 1;; ++n) {
      const TempFolder folder;
      const std::string path = folder.path() + "/work.folded";
      folder.Write("/work.folded", "old");
      FakeKernel fake;
      fake.FailNth(n, error);
      const absl::Status status = WriteProfile(profile, path);
      const bool reached = fake.calls(testing::Call::kAny) >= n;
      CHECK(FilesIn(folder) == 1);
      CHECK(TextOf(path).starts_with(status.ok() ? "app-42;_start" : "old"));
      if (reached) continue;
      CHECK(status == absl::OkStatus());
      break;
    }
  }
}

TEST_CASE("the progress of a file that is written ends with 1", "[profile][writer]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/out.folded";
  std::vector<double> seen;
  WriteOptions options;
  options.progress = [](double done, void* to) { static_cast<std::vector<double>*>(to)->push_back(done); };
  options.progress_argument = &seen;
  REQUIRE(WriteProfile(SampleProfile(), path, options).ok());
  CHECK(seen == std::vector<double>{1});
  seen.clear();
  CHECK_FALSE(WriteProfile(SampleProfile(), folder.path() + "/absent/out.folded", options).ok());
  CHECK(seen.empty());
}

TEST_CASE("a path that cannot be written is refused with its remedy", "[profile][writer]") {
  const TempFolder folder;
  const std::string inside = folder.path() + "/a.folded", missing = folder.path() + "/no/a.folded";
  std::filesystem::create_directory(inside);
  CHECK_THAT(std::string(WriteProfile(SampleProfile(), inside).message()),
             Catch::EndsWith("/a.folded: it is a folder. Remedy: choose the name of a file"));
  CHECK_THAT(std::string(WriteProfile(SampleProfile(), missing).message()),
             Catch::EndsWith("/no', does not exist. Remedy: create it"));
  FakeKernel fake;
  fake.FailNth(2, EACCES, testing::Call::kOpen);  // the first one looks at what is there
  const absl::Status status = WriteProfile(SampleProfile(), folder.path() + "/b.folded");
  CHECK(absl::IsPermissionDenied(status));
  CHECK_THAT(std::string(status.message()),
             Catch::EndsWith("Permission denied. Remedy: choose a file and a folder that this user may write to"));
}

TEST_CASE("a symbolic link stays one, and the file that it names is replaced", "[profile][writer]") {
  const TempFolder folder;
  const std::string real = folder.path() + "/real.txt", link = folder.path() + "/link.folded";
  std::ofstream(real) << "old";
  std::filesystem::create_symlink(real, link);
  CHECK(WriteProfile(SampleProfile(), link) == absl::OkStatus());
  CHECK(std::filesystem::is_symlink(link));
  CHECK_THAT(TextOf(real), Catch::Contains(";main;") && !Catch::Contains("old"));
  CHECK(FilesIn(folder) == 2);
}

TEST_CASE("a symbolic link to a file that does not exist stays one, and the file is made", "[profile][writer]") {
  const TempFolder folder;
  const std::string link = folder.path() + "/link.folded", next = folder.path() + "/next";
  std::filesystem::create_symlink("next", link);
  std::filesystem::create_symlink(folder.path() + "/real.txt", next);
  CHECK(WriteProfile(SampleProfile(), link) == absl::OkStatus());
  CHECK((std::filesystem::is_symlink(link) && std::filesystem::is_symlink(next)));
  CHECK_THAT(TextOf(folder.path() + "/real.txt"), Catch::Contains(";main;"));
  CHECK(FilesIn(folder) == 3);
  const std::string loop = folder.path() + "/loop.folded";
  std::filesystem::create_symlink(loop, loop);
  CHECK_FALSE(WriteProfile(SampleProfile(), loop).ok());
  CHECK(std::filesystem::is_symlink(loop));
}

TEST_CASE("a file that is replaced keeps its permissions", "[profile][writer]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/private.folded";
  std::ofstream(path) << "old";
  using std::filesystem::perms;
  for (const perms mode : {perms::owner_read | perms::owner_write, perms::owner_all | perms::group_read}) {
    std::filesystem::permissions(path, mode);
    CHECK(WriteProfile(SampleProfile(), path) == absl::OkStatus());
    CHECK(std::filesystem::status(path).permissions() == mode);
  }
}

TEST_CASE("names of files are as long as the file system allows, and have no zero byte", "[profile][writer]") {
  const TempFolder folder;
  const std::string extension = ".folded", longest(NAME_MAX - extension.size(), 'x');
  CHECK(WriteProfile(SampleProfile(), folder.path() + "/" + longest + extension) == absl::OkStatus());
  CHECK_FALSE(WriteProfile(SampleProfile(), folder.path() + "/x" + longest + extension).ok());
  const absl::Status zero = WriteProfile(SampleProfile(), folder.path() + std::string("/a\0b.folded", 11));
  CHECK(zero.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(zero.message()), Catch::Contains("a\\000b.folded") && Catch::Contains("zero byte"));
  CHECK(FilesIn(folder) == 1);
}

TEST_CASE("a link to an open descriptor is written directly, as /dev/stdout is", "[profile][writer]") {
  const TempFolder folder;
  const std::string real = folder.path() + "/real.txt", link = folder.path() + "/stdout.folded";
  FILE* const file = std::fopen(real.c_str(), "w");
  REQUIRE(file != nullptr);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(fileno(file)), link);
  CHECK(WriteProfile(SampleProfile(), link) == absl::OkStatus());
  CHECK(std::filesystem::is_symlink(link));
  struct stat opened, named;
  CHECK((fstat(fileno(file), &opened) == 0 && stat(real.c_str(), &named) == 0 && opened.st_ino == named.st_ino));
  std::fclose(file);
  CHECK_THAT(TextOf(real), Catch::Contains(";main;"));
}

TEST_CASE("a limit on files, and a reader that is gone, end the writing and not the program", "[profile][writer]") {
  const TempFolder folder;
  const std::string limited = folder.path() + "/limited.folded", pipe = folder.path() + "/pipe.folded";
  CHECK(testing::InChild([&] {
          const rlimit limit{.rlim_cur = 10, .rlim_max = 10};
          return setrlimit(RLIMIT_FSIZE, &limit) == 0 && !WriteProfile(SampleProfile(), limited).ok();
        }) == 0);
  CHECK(FilesIn(folder) == 0);
  int ends[2];
  REQUIRE((::pipe(ends) == 0 && close(ends[0]) == 0));
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), pipe);
  CHECK(testing::InChild([&] { return !WriteProfile(SampleProfile(), pipe).ok(); }) == 0);
  close(ends[1]);
}

TEST_CASE("a pipe is written directly", "[profile][writer]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/pipe.folded";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(WriteProfile(SampleProfile(), path).ok() ? 0 : 1);
  CHECK_THAT(TextOf(path), Catch::Contains(";main;"));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(FilesIn(folder) == 1);
}

}  // namespace
}  // namespace perfkit::profile

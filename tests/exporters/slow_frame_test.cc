// Files of a slow frame: their size, what stands in them, and what is refused. What the page shows:
// readers/slow_frame_check.cc.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "perfkit/exporters.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/hitch_profile.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/perfetto_file.h"
#include "tests/exporters/refusing_sink.h"
#include "tests/support/temp_folder.h"

namespace perfkit::exporters {
namespace {

using testing::HitchOf;
using testing::HitchProfile;
using testing::PerfettoFile;

using Writer = absl::Status (*)(const Profile&, const SlowFrame&, const WriteOptions&, ProfileSink);

std::string FileOf(Writer write, const Profile& profile, const SlowFrame& frame) {
  std::string file;
  CHECK(write(profile, frame, {}, [&](std::string_view bytes) {
          file += bytes;
          return absl::OkStatus();
        }) == absl::OkStatus());
  return file;
}

// Slices whose text has `part`.
std::vector<std::string> SlicesWith(const PerfettoFile& file, const std::string& part) {
  std::vector<std::string> found;
  for (const std::string& slice : file.slices) {
    if (slice.find(part) != std::string::npos) found.push_back(slice);
  }
  return found;
}

TEST_CASE("a slow frame is written by extension, and formats that show none say which do", "[exporters][slow_frame]") {
  const testing::TempFolder folder;
  const Profile profile = HitchProfile().Make();
  const SlowFrame frame = HitchOf(profile);
  for (const char* const name : {"/hitch.html", "/hitch.pftrace", "/hitch.perfetto-trace"}) {
    CHECK(WriteSlowFrame(profile, frame, folder.path() + name) == absl::OkStatus());
    CHECK(std::filesystem::file_size(folder.path() + name) > 0);
  }
  const auto refused = [&](const char* name, const Profile& of) {
    return WriteSlowFrame(of, frame, folder.path() + name);
  };
  for (const char* const name : {"/hitch.folded", "/hitch.pb.gz", "/hitch.json.gz", "/hitch", "/hitch.foo"}) {
    CHECK(refused(name, profile).code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(refused(name, profile).message()), Catch::Contains("choose one of .pftrace .perfetto-trace .html"));
    CHECK(!std::filesystem::exists(folder.path() + name));
  }
  CHECK(refused("/hitch.doc", profile).code() == absl::StatusCode::kInvalidArgument);
  CHECK(refused("/other.html", Profile()).code() == absl::StatusCode::kInvalidArgument);  // another profile's frame
  Profile damaged = profile;
  damaged.samples[0].thread = 99;
  CHECK(refused("/damaged.html", damaged).code() == absl::StatusCode::kInvalidArgument);
  const absl::Status no_folder = refused("/no/such/folder/hitch.html", profile);
  CHECK(no_folder.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(no_folder.message()), Catch::EndsWith("/no/such/folder', does not exist. Remedy: create it"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 3);
}

TEST_CASE("slow frame: whichever piece a sink refuses, its status is the writer's", "[exporters][slow_frame]") {
  testing::CheckRefusedPieces(
      [](const Profile& profile, const WriteOptions& options, ProfileSink sink) {
        return WriteSlowFrameHtml(profile, HitchOf(profile), options, sink);
      },
      HitchProfile().Make());
  testing::CheckRefusedPieces(
      [](const Profile& profile, const WriteOptions& options, ProfileSink sink) {
        return WriteSlowFramePerfetto(profile, HitchOf(profile), options, sink);
      },
      HitchProfile().Make());
}

// Samples of a run of ten minutes, one each 10 us: 60 million would take a test too long. 300,000 are more than one
// page can hold.
TEST_CASE("the page of a frame is smaller than 1 MB, however long the run", "[exporters][slow_frame]") {
  const Profile profile = HitchProfile().Make();
  Profile large = profile;
  const ProfileSample one = profile.samples.back();
  for (uint64_t i = 0; i < 300'000; ++i) {
    large.samples.push_back(one);
    large.samples.back().time_ns = one.time_ns + 10'000 * (i + 1);
    large.strings.push_back("label " + std::to_string(i * 7919));
    large.samples.back().label = static_cast<uint32_t>(large.strings.size() - 1);
  }
  const std::string page = FileOf(WriteSlowFrameHtml, profile, HitchOf(profile));
  CHECK(page.size() < 200'000);
  CHECK(FileOf(WriteSlowFrameHtml, large, HitchOf(large)) == page);
}

TEST_CASE("the page of a slow frame loads nothing, and no name stands in its text", "[exporters][slow_frame]") {
  const std::string plain = FileOf(WriteSlowFrameHtml, HitchProfile().Make(), HitchOf(HitchProfile().Make()));
  for (const std::string& name : testing::HostileNames()) {
    HitchProfile hitch(1, {name, name, name, name, name, name, name});
    const Profile profile = hitch.Make();
    const std::string page = FileOf(WriteSlowFrameHtml, profile, HitchOf(profile));
    CHECK_THAT(page, !Catch::Contains("http:") && !Catch::Contains("https:") && !Catch::Contains("window.broken"));
    const auto after = [](const std::string& text) { return text.substr(text.rfind("</script>\n<script>")); };
    CHECK(after(page) == after(plain));
  }
}

TEST_CASE("the trace of a slow frame has its explanation, its waits and its arrows", "[exporters][slow_frame]") {
  const Profile profile = HitchProfile().Make();
  const SlowFrame frame = HitchOf(profile);
  const PerfettoFile file(FileOf(WriteSlowFramePerfetto, profile, frame));
  const ProfileZone& zone = profile.zones[frame.zone];
  const std::vector<std::string> slices = SlicesWith(file, ": frame 30 ");
  REQUIRE(slices.size() == 1);
  CHECK_THAT(slices[0], Catch::Contains("slow frame=frame 30 of game-42") && Catch::Contains("kept=level=3") &&
                            Catch::Contains("state=players=64") &&
                            Catch::EndsWith(absl::StrFormat(" %d-%d", zone.from_ns, zone.to_ns)));
  CHECK_THAT(slices[0], Catch::Contains("faults 1=900 page faults: /data/level.bin"));
  for (const FramePart& part : frame.parts) {
    CHECK_THAT(slices[0], Catch::Contains(absl::StrFormat("%+d ns, %d here, %d usually: ", part.excess_ns(), part.ns,
                                                          part.usual_ns)));
  }
  for (const FrameCause& cause : frame.causes) {
    CHECK_THAT(slices[0], Catch::Contains(absl::StrFormat("%+d ns, %s: ", cause.share_ns,
                                                          FrameCauseConfidenceName(cause.confidence))));
  }
  CHECK_THAT(slices[0],
             Catch::Contains("a lock that loader (43) held in LoadLevel()") && Catch::Contains("not known 1="));
  CHECK(SlicesWith(file, ": frame 27 ").empty());
  CHECK(SlicesWith(file, ": frame 28 ").size() == 1);
  CHECK(SlicesWith(file, ": frame 31 ").empty());
  // From the loader, which held the lock, to the wait; from the loader, which woke the thread.
  REQUIRE(file.flows.size() == 2);
  const std::string loader = "thread 42/43 loader, locks and wake-ups: ", game = "thread 42/42 game, ";
  CHECK_THAT(file.flows.at(1).at(0), Catch::StartsWith(loader + "holds the lock that game (42) waits for "));
  CHECK_THAT(file.flows.at(1).at(1),
             Catch::StartsWith(game + "off the CPU: futex 0x7f12a0, held by loader (43) in LoadLevel()"));
  CHECK_THAT(file.flows.at(2).at(0), Catch::StartsWith(loader + "wakes game (42) "));
  CHECK_THAT(file.flows.at(2).at(1), Catch::StartsWith(game + "woken: woken by loader (43) "));
  CHECK(file.flows.at(1).size() == 2);
  CHECK(file.flows.at(2).size() == 2);
}

TEST_CASE("the trace of any frame of any profile can be read", "[exporters][slow_frame]") {
  for (uint64_t seed = 1; seed <= testing::Seeds(100); ++seed) {
    INFO("seed " << seed);
    const Profile profile = testing::AnyProfile(seed).Make();
    for (uint32_t zone = 0; zone < profile.zones.size(); ++zone) {
      if (!profile.zones[zone].is_frame) continue;
      const PerfettoFile file(FileOf(WriteSlowFramePerfetto, profile, ExplainFrame(profile, zone)));
      CHECK(SlicesWith(file, "slow frame=").size() == 1);
    }
  }
}

}  // namespace
}  // namespace perfkit::exporters

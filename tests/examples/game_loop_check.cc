// Runs the demo, shorter than usual, and reads what it printed and drew.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/measurement.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"

namespace {

using perfkit::testing::Run;

// Runs the demo with `arguments`.
Run RunGame(const std::string& arguments) { return perfkit::testing::RunCommand(GAME_LOOP " " + arguments); }

// A folder of our own, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() { REQUIRE(mkdtemp(path_) != nullptr); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* name) const { return std::string(path_) + "/" + name; }

 private:
  char path_[32] = "/tmp/game_loop_XXXXXX";
};

// The first line that contains `text`; "" when none does.
std::string LineWith(const std::string& output, const std::string& text) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(text) != std::string::npos) return line;
  }
  return "";
}

// The numbers at the end of a line of a table, thousands separators taken out.
std::vector<double> NumbersOf(const std::string& line) {
  std::vector<double> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    std::erase(word, ',');
    char* end;
    const double number = std::strtod(word.c_str(), &end);
    if (*end == '\0') numbers.push_back(number);
  }
  return numbers;
}

uint32_t Big32(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// The pixels of a PNG whose deflate blocks are all stored, as the demo writes them; "" when anything is not as RFC
// 1950, RFC 1951 and the PNG standard want it. Rows keep their filter byte.
std::string StoredPixels(const std::string& png, uint32_t* width, uint32_t* height) {
  if (png.size() < 60 || png.compare(0, 8, "\x89PNG\r\n\x1a\n") != 0 || png.compare(12, 4, "IHDR") != 0) return "";
  *width = Big32(png, 16);
  *height = Big32(png, 20);
  const size_t data = 8 + 25;  // signature, IHDR
  if (png.compare(data + 4, 4, "IDAT") != 0) return "";
  const size_t end = data + 8 + Big32(png, data);
  if (png.size() != end + 4 + 12 || png.compare(end + 8, 4, "IEND") != 0) return "";
  std::string pixels;
  bool last = false;
  size_t at = data + 8 + 2;
  while (!last && at + 5 <= end - 4) {
    last = png[at] == 1;
    const size_t size = static_cast<uint8_t>(png[at + 1]) | static_cast<size_t>(static_cast<uint8_t>(png[at + 2])) << 8;
    if (at + 5 + size > end - 4) return "";
    pixels.append(png, at + 5, size);
    at += 5 + size;
  }
  return last && at == end - 4 ? pixels : "";
}

// The number after `words` in `line`; 0 where they are not.
double NumberBehind(const std::string& line, const std::string& words) {
  const size_t at = line.find(words);
  return at == std::string::npos ? 0 : std::atof(line.c_str() + at + words.size());
}

// Whether the last hitch that is shown is the one in which an asset was locked, explained with the thread that had it
// and that thread's stack.
bool ShowsTheLock(const Run& run) {
  const size_t hitch = run.output.find("\nA hitch, explained:\n\nframe ");
  if (hitch == std::string::npos) return false;
  const std::string text = run.output.substr(hitch);
  const std::string cause = LineWith(text, " a lock that loader (");
  return text.find("\n  kept: an asset that is late\n") != text.npos &&
         cause.find(") held in game::Assets::Load(), wanted in game::Assets::Use()") != cause.npos &&
         LineWith(text, "   loader (").find("game::Assets::Load()") != text.npos;
}

// The demo with fewer frames; again where something else took as long as the frame waited for its asset, such as other
// programs: then another zone may well be the worst, and the session may not get to see the lock.
Run PlayUndisturbed(const std::string& picture, const std::string& profile) {
  Run run;
  for (int tries = 0; tries < 5; ++tries) {
    run = RunGame("--frames 90 --picture " + picture + " --profile " + profile);
    const std::string asset = LineWith(run.output, "for an asset. Seen: ");
    const bool shows_lock = ShowsTheLock(run) || run.output.find("No profile: ") != std::string::npos;
    if (shows_lock && NumberBehind(asset, "Seen: ") < 2 * NumberBehind(asset, "waited ")) break;
  }
  return run;
}

// Once for all the tests that look at it.
struct Played {
  TemporaryFolder folder;
  std::string picture = folder / "hud.png";
  std::string profile = folder / "played";
  Run run = PlayUndisturbed(picture, profile);
};
const Played& Game() {
  static const Played played;
  return played;
}

}  // namespace

TEST_CASE("game loop: zones") {
  INFO(Game().run.output);
  REQUIRE(Game().run.exit_code == 0);
  const std::vector<double> frame = NumbersOf(LineWith(Game().run.output, "frame  "));
  REQUIRE(frame.size() >= 7);  // calls, total, self, p50, p95, p99, max
  CHECK(frame[0] == 90);
  // Ours, and the ones that Bullet reports by itself, below ours.
  for (const char* zone : {"  physics ", "    internalSingleStepSimulation ", "solveGroupCacheFriendlySetup ",
                           "  particles ", "  draw scene ", "  draw HUD ", "  load level chunk "}) {
    INFO(zone);
    CHECK(!LineWith(Game().run.output, zone).empty());
  }
  CHECK(NumbersOf(LineWith(Game().run.output, "    internalSingleStepSimulation "))[0] == 90);
  CHECK(!LineWith(Game().run.output, "worker 1 ").empty());
  CHECK(!LineWith(Game().run.output, "in the arena ").empty());
}

TEST_CASE("game loop: causes of the provoked hitches") {
  INFO(Game().run.output);
  const std::string chunk = LineWith(Game().run.output, "fresh memory. Seen: ");
  CHECK(chunk.find("frame 30: touched 192 MiB") != std::string::npos);
  CHECK(chunk.find("worst zone 'load level chunk'") != std::string::npos);
  const size_t faults = chunk.find(" page faults");
  REQUIRE(faults != std::string::npos);
  const size_t number = chunk.find_last_of(' ', faults - 1);
  CHECK(std::atoi(chunk.c_str() + number) >= 192 << 8);  // one for each page of 4 KiB
  const std::string asset = LineWith(Game().run.output, "for an asset. Seen: ");
  CHECK(asset.find("worst zone 'wait for asset'") != std::string::npos);
  CHECK(asset.find("waited ") != std::string::npos);
}

TEST_CASE("game loop: what is missing is said once, and never a 0") {
  INFO(Game().run.output);
  const std::string missing = "No cycles and no IPC here";
  const size_t first = Game().run.output.find(missing);
  if (first == std::string::npos) {
    CHECK(Game().run.output.find("\ncycles ") != std::string::npos);  // its table
  } else {
    CHECK(Game().run.output.find(missing, first + 1) == std::string::npos);
    CHECK(Game().run.output.find("\ncycles  ") == std::string::npos);
  }
}

TEST_CASE("game loop: picture") {
  INFO(Game().run.output);
  std::ifstream file(Game().picture, std::ios::binary);
  const std::string png{std::istreambuf_iterator<char>(file), {}};
  uint32_t width = 0, height = 0;
  const std::string pixels = StoredPixels(png, &width, &height);
  CHECK(width == 1600);
  CHECK(height == 900);
  REQUIRE(pixels.size() == size_t{height} * (1 + size_t{width} * 3));
  std::set<std::string> colours;
  for (uint32_t y = 0; y < height; y += 7) {
    for (uint32_t x = 0; x < width; x += 7) colours.insert(pixels.substr(y * (1 + width * 3) + 1 + x * 3, 3));
  }
  CHECK(colours.size() > 500);
}

TEST_CASE("game loop: the picture is named by a path that can be opened from anywhere") {
  const TemporaryFolder folder;
  const std::string path = std::filesystem::canonical(folder / ".").string();
  const Run run =
      perfkit::testing::RunCommand("cd " + path + " && " GAME_LOOP " --frames 2 --picture hud.png --no-profile");
  INFO(run.output);
  CHECK(run.output.find("Picture: " + path + "/hud.png\n") != std::string::npos);
}

TEST_CASE("game loop: its page and its trace have zones and frames") {
  INFO(Game().run.output);
  if (Game().run.output.find("No profile: ") != std::string::npos) SKIP_TEST("perfkit::exporters is not linked");
  CHECK(Game().run.output.find(" slowest of ") != std::string::npos);
  for (const char* ending : {".html", ".pftrace"}) {
    std::ifstream file(Game().profile + ending, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(text.size() > 10'000);
    CHECK(Game().run.output.find("Profile: " + Game().profile + ending + "\n") != std::string::npos);
    if (std::string(ending) == ".html") continue;  // packed
    for (const char* word : {"load level chunk", "solveGroupCacheFriendlySetup", "frame 30", "task-clock"}) {
      INFO(word);
      CHECK(text.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("game loop: the last that it shows is a hitch, explained, with a picture of it") {
  INFO(Game().run.output);
  const size_t hitch = Game().run.output.find("\nA hitch, explained:\n\nframe ");
  if (hitch == std::string::npos) {
    REQUIRE(Game().run.output.find("No profile: ") != std::string::npos);
    SKIP_TEST("no session is permitted");
  }
  const std::string text = Game().run.output.substr(hitch), picture = Game().folder / "hud_hitch.png";
  CHECK(text.find("\n  causes\n") != std::string::npos);
  CHECK(text.ends_with("\nPicture of this hitch: " + picture + "\n"));
  CHECK(std::filesystem::file_size(picture) > 10'000);
  if (text.find("This hitch: ") == std::string::npos) SKIP_TEST("perfkit::exporters is not linked");
  // The planted lock, with its holder and where that was.
  CHECK(ShowsTheLock(Game().run));
  for (const char* ending : {"_hitch.html", "_hitch.pftrace"}) {
    CHECK(text.find("\nThis hitch: " + Game().profile + ending + "\n") != std::string::npos);
    CHECK(std::filesystem::file_size(Game().profile + ending) > 10'000);
  }
}

TEST_CASE("game loop: a profile that cannot be written is an error with its reason") {
  const Run run = RunGame("--frames 2 --no-picture --profile /no/such/folder/played");
  INFO(run.output);
  if (run.output.find("No profile: ") != std::string::npos) SKIP_TEST("perfkit::exporters is not linked");
  CHECK(run.exit_code == 1);
  CHECK(run.output.find("/no/such/folder/played.html") != std::string::npos);
}

// The eight kinds of planted hitches, and what one of the causes of each says. If the worker that a frame waits for is
// preempted itself, the wait for it is a priority inversion.
struct PlantedKind {
  const char* name;
  std::vector<const char*> says;
};
const std::vector<PlantedKind>& PlantedKinds() {
  static const std::vector<PlantedKind> kKinds{
      {"a lock held by a worker", {": a lock that loader ("}},
      {"a storm of page faults", {": page faults in planted hitch"}},
      {"preemption by busy processes", {": preempted"}},
      {"a priority inversion", {": priority inversion: waited in game::Hitches::WaitForLow() for low ("}},
      {"a read of a cold file", {": read of descriptor ", ": pread64 of descriptor ", ": a disk, probably"}},
      {"more work", {": more work in planted hitch, in game::ComputeFor(int)"}},
      {"the allocator's lock", {": the allocator's lock"}},
      {"a late worker",
       {": waited in game::Hitches::WaitForAsset() for loader (",
        ": priority inversion: waited in game::Hitches::WaitForAsset() for loader ("}}};
  return kKinds;
}

// Whether the lines of a kind in the table of planted hitches have one of its causes.
bool IsNamed(const std::string& table, const PlantedKind& kind) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line) && (line.starts_with("  ") || line.empty() || line.back() == ':');) {
    if (!line.starts_with("  " + std::string(kind.name) + " ")) continue;
    for (const char* const says : kind.says) {
      if (line.find(says) != line.npos) return true;
    }
  }
  return false;
}

// On a busy machine other programs may take more of a frame than what was planted. So each kind must be named in one of
// three runs.
TEST_CASE("game loop: each planted hitch is named", "[measurement]") {
  std::set<std::string> unnamed;
  for (const PlantedKind& kind : PlantedKinds()) unnamed.insert(kind.name);
  std::string output;
  bool has_table = true;
  const bool all_are_named = perfkit::testing::HoldsOnceInThree([&] {
    const TemporaryFolder folder;
    const Run run = RunGame("--hitches --frames 90 --no-picture --profile " + (folder / "played"));
    INFO(run.output);
    REQUIRE(run.exit_code == 0);
    const size_t table = run.output.find("\nplanted hitches, and what is said of them:\n");
    has_table = table != std::string::npos;
    if (!has_table) return true;
    output += run.output.substr(table);
    for (const PlantedKind& kind : PlantedKinds()) {
      INFO(kind.name);
      CHECK(!LineWith(run.output.substr(table), "  " + std::string(kind.name) + " ").empty());
      if (IsNamed(run.output.substr(table + 1), kind)) unnamed.erase(kind.name);
    }
    return unnamed.empty();
  });
  if (!has_table) SKIP_TEST("no session is permitted");
  INFO(output);
  CAPTURE(unnamed);
  CHECK(all_are_named);
}

TEST_CASE("game loop: words that it does not know") {
  const Run bad = RunGame("--frames none");
  CHECK(bad.exit_code == 2);
  CHECK(bad.output.find("--frames wants a number") != std::string::npos);
  CHECK(RunGame("--wat").exit_code == 2);
  const Run help = RunGame("--help");
  CHECK(help.exit_code == 0);
  CHECK(help.output.find("--picture PATH") != std::string::npos);
}

TEST_CASE("game loop: a picture that cannot be written is an error with its reason") {
  const Run run = RunGame("--frames 2 --no-profile --picture /no/such/folder/hud.png");
  CHECK(run.exit_code == 1);
  CHECK(run.output.find("cannot write /no/such/folder/hud.png: No such file") != std::string::npos);
}

// The demo: a small game that knows what each of its frames costs, and why some of them are late.
//
//   main.cc      the command line and the report          scene.cc       rigid bodies: Bullet
//   game.cc      the loop, with its zones                 particles.cc   sparks: TBB
//   hitches.cc   eight kinds of hitches, planted if --hitches is given
//   bullet_zones.cc, workers.cc   perfkit put into both, without a change to either
//   hud.cc, hud_panels.cc         what a FrameCounter knows, drawn by ImGui and sdl_imgui_renderer.cc
//   scene_view.cc, backdrop.cc, screen.cc, png.cc         the picture
#include <perfkit/profile_writer.h>
#include <perfkit/session.h>
#include <perfkit/slow_frames.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "game.h"
#include "options.h"

namespace {

// Once, and only where it is so.
void SayWhatIsMissing(const perfkit::FrameCounter& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames.reason(i).empty()) continue;
    const bool hardware = frames.name(i) == "cycles" || frames.name(i) == "instructions";
    std::printf("%s: %.*s%s\n", std::string(frames.name(i)).c_str(), static_cast<int>(frames.reason(i).size()),
                frames.reason(i).data(), hardware ? "\nNo cycles and no IPC here; the software counters follow." : "");
    if (hardware) return;  // what is true of one is true of all
  }
}

// Two and a half times what a frame takes here, and at least 20 ms: a budget that also means something on a slow or
// busy machine.
std::chrono::nanoseconds SuitableBudget(game::Screen& screen) {
  using std::chrono::nanoseconds, std::chrono::milliseconds;
  game::Game rehearsal(screen, {.frames = 40});
  rehearsal.Run();
  const auto median = static_cast<int64_t>(rehearsal.frames().zones().front().wall_quantiles.p50);
  return std::max<nanoseconds>(milliseconds(20), nanoseconds(median * 5 / 2));
}

// As soon as such a frame has ended, while the game goes on.
void PrintSlowFrame(const perfkit::ExplainedFrame& slow) {
  std::printf("%s\n", perfkit::FormatSlowFrame(slow.profile, slow.frame).c_str());
}

// Plays, sampled on and off the CPU. The profile has the slow frames with their zones, those that tell what is usual,
// and the totals of all.
absl::StatusOr<perfkit::Profile> Play(game::Game& game) {
  absl::StatusOr<perfkit::Session> session =
      perfkit::Session::Start({.clock = perfkit::SessionClock::kWall,
                               .frames = &game.frames(),
                               .keep = perfkit::KeepFrames{.on_slow_frame = PrintSlowFrame},
                               .wakers = true,
                               .waker_stacks = true,
                               .preempters = true,
                               .page_faults = true});
  game.Run();
  if (!session.ok()) return session.status();
  return session->Stop();
}

// What was planted, and the largest causes that were found: the reason of each such frame says which it is.
void PrintPlanted(const perfkit::Profile& profile) {
  std::printf("\nplanted hitches, and what is said of them:\n");
  for (const perfkit::SlowFrame& slow : perfkit::FindSlowFrames(profile, {.frames = 0})) {
    const std::string& reason = profile.strings[profile.zones[slow.zone].reason];
    for (size_t i = 0; i < std::min<size_t>(slow.causes.size(), 3); ++i) {
      const perfkit::FrameCause& cause = slow.causes[i];
      if (i != 0 && cause.share_ns * 10 < slow.excess_ns()) break;
      std::printf("  %-28s %6.1f of %6.1f ms, %s: %s\n", reason.c_str(), static_cast<double>(cause.share_ns) / 1e6,
                  static_cast<double>(slow.excess_ns()) / 1e6,
                  std::string(perfkit::FrameCauseConfidenceName(cause.confidence)).c_str(),
                  perfkit::FormatFrameCause(profile, cause).c_str());
    }
  }
}

// The frame that waited longest for a lock whose holder is known, with the holder's stack; without one, the slowest.
const perfkit::SlowFrame* FindFrameToShow(const std::vector<perfkit::SlowFrame>& slow) {
  const perfkit::SlowFrame* shown = slow.empty() ? nullptr : &slow[0];
  int64_t longest_ns = 0;
  for (const perfkit::SlowFrame& frame : slow) {
    for (const perfkit::FrameCause& cause : frame.causes) {
      const bool is_held = cause.kind == perfkit::FrameCause::Kind::kLock &&
                           cause.thread != perfkit::FrameCause::kNoThread &&
                           cause.thread_stack != perfkit::ProfileStack::kRoot;
      if (is_held && cause.share_ns > longest_ns) longest_ns = cause.share_ns, shown = &frame;
    }
  }
  return shown;
}

// A page and a trace, where perfkit::exporters is linked: of the run, or of one frame.
template <class Write>
absl::Status WriteFiles(const char* what, const std::string& name, Write&& write) {
  for (const std::string ending : {".html", ".pftrace"}) {
    if (absl::Status status = write(name + ending); !status.ok()) return status;
    std::printf("%s: %s\n", what, std::filesystem::absolute(name + ending).c_str());
  }
  return absl::OkStatus();
}

// Where a component is missing, files are left out; other errors are errors.
bool IsWritten(const absl::Status& status) {
  if (status.ok()) return true;
  const bool is_left_out = status.code() == absl::StatusCode::kUnimplemented;
  std::fprintf(is_left_out ? stdout : stderr, is_left_out ? "No profile: %s\n" : "game_loop: %s\n",
               std::string(status.message()).c_str());
  return is_left_out;
}

bool SavePicture(const char* what, const game::Screen& screen, const std::string& path) {
  std::string reason;
  if (!screen.SavePicture(path, &reason)) {
    std::fprintf(stderr, "game_loop: cannot write %s: %s\n", path.c_str(), reason.c_str());
    return false;
  }
  std::printf("%s: %s\n", what, std::filesystem::absolute(path).c_str());
  return true;
}

// "game_loop.png" -> "game_loop_hitch.png"
std::string HitchPath(std::filesystem::path path) {
  const std::string name = path.stem().string() + "_hitch" + path.extension().string();
  return path.replace_filename(name).string();
}

// The last that is shown: a hitch with its causes, as text, page, trace and picture.
bool ShowHitch(const perfkit::Profile& profile, const game::Options& options, const game::Screen& screen,
               game::Game& game) {
  const std::vector<perfkit::SlowFrame> slow = perfkit::FindSlowFrames(profile);
  const perfkit::SlowFrame* const shown = FindFrameToShow(slow);
  if (shown == nullptr) return true;
  const std::string text = perfkit::FormatSlowFrame(profile, *shown);
  std::printf("\nA hitch, explained:\n\n%s\n", text.c_str());
  const auto write = [&](const std::string& path) { return perfkit::WriteSlowFrame(profile, *shown, path); };
  const absl::Status written = WriteFiles("This hitch", options.profile + "_hitch", write);
  if (!written.ok() && written.code() != absl::StatusCode::kUnimplemented) return IsWritten(written);
  if (options.picture.empty()) return true;
  game.ShowHitch(text);
  return SavePicture("Picture of this hitch", screen, HitchPath(options.picture));
}

bool ShowProfile(const absl::StatusOr<perfkit::Profile>& profile, const std::string& name) {
  if (!profile.ok()) {
    std::printf("\nNo profile: %s\n", std::string(profile.status().message()).c_str());  // not permitted here
    return true;
  }
  std::printf("\n%s\n", perfkit::FormatSlowFrames(*profile).c_str());
  const auto write = [&](const std::string& path) { return perfkit::WriteProfile(*profile, path); };
  return IsWritten(WriteFiles("Profile", name, write));
}

int Run(const game::Options& options) {
  game::Screen screen;
  if (!screen.ok()) {
    std::fprintf(stderr, "game_loop: no screen: %s\n", SDL_GetError());
    return 1;
  }
  game::Game game(screen, {.frames = options.frames, .budget = SuitableBudget(screen), .hitches = options.hitches});
  SayWhatIsMissing(game.frames());
  absl::StatusOr<perfkit::Profile> profile = absl::CancelledError();
  if (options.profile.empty()) {
    game.Run();
  } else {
    profile = Play(game);
  }
  std::fputs(game.frames().FormatZones().c_str(), stdout);
  std::printf("\n%s", game.FormatProvoked().c_str());
  if (options.hitches && profile.ok()) PrintPlanted(*profile);
  bool is_shown = options.profile.empty() || ShowProfile(profile, options.profile);
  if (!options.picture.empty()) is_shown = SavePicture("\nPicture", screen, options.picture) && is_shown;
  if (profile.ok()) is_shown = ShowHitch(*profile, options, screen, game) && is_shown;
  return is_shown ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  game::Options options;
  std::string error;
  if (!game::ParseOptions(argc, argv, &options, &error)) {
    std::fprintf(stderr, "game_loop: %s\n%s", error.c_str(), game::kUsage);
    return 2;
  }
  if (options.help) {
    std::fputs(game::kUsage, stdout);
    return 0;
  }
  return Run(options);
}

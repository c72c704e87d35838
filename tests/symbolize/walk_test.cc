// A random walk over modules: libraries are loaded and unloaded, rebuilt, replaced, deleted and renamed, processes
// fork, run programs and live in containers with other files at the same paths, and functions are made at run time. In
// between, code of all these touches pages, each once, and each such page fault is sampled. So each sample's function,
// module and build-id are known, and each name that a Symbolizer or a ProfileCollector gives must be that one, or
// unknown with a reason. It may be unknown only if its file is no longer where it was.
//
// A walk runs in a process of its own, which observes itself or another one. Libraries and programs are made of bytes
// (tests/support/made_elf.h), and pages are touched one by one as told, so no result depends on time.
#include "tests/support/walk.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/walk_actor.h"
#include "tests/symbolize/walk_known.h"
#include "tests/symbolize/walk_observer.h"

namespace perfkit::walk {
namespace {

using What = Command::What;

class Walker : public Truth {
 public:
  Walker(const Walk& walk, const std::string& folder)
      : walk_(walk), folder_(folder), local_(folder, lines_), observer_(walk, *this) {}

  std::string Run() {
    // Numbers of inodes are small there, and the same ones as in containers.
    if (walk_.tmpfs && may_mount_) (void)OwnFileSystem(folder_);
    known_[0].pid = walk_.own ? getpid() : local_.Fork(0, false);
    for (size_t file = 0; file < kFiles; ++file) Write(0, file, true, false);
    observer_.Check(observer_.Open(walk_.own ? Target::AllThreads() : Target::Process(known_[0].pid)), "Open");
    if (!wrong().empty()) return wrong();
    Start();
    for (const Move& move : walk_.moves) {
      Make(Possible(move));
      if (!wrong().empty()) break;
    }
    Finish();
    return wrong();
  }
  std::string Counts() const { return absl::StrFormat("%d %d", observer_.named(), observer_.unnamed()); }

  bool CanBeAt(const Touched& touched, std::string_view path) const override {
    const auto deleted = std::string_view(" (deleted)");
    if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
    for (size_t file = 0; file < kFiles; ++file) {
      if (path == FileName(folder_, file)) return paths_.contains({touched.build, file});
    }
    return false;
  }
  bool InPlace(const Touched& touched, std::string_view path) const override {
    size_t file = 0;
    while (file < kFiles && path != FileName(folder_, file)) ++file;
    if (file == kFiles || files_[views_.at(touched.build)][file] != touched.build) return false;
    if (views_.at(touched.build) == 0) return true;
    // In a container: by a process that lives there, if it is the one that has mapped it first.
    const auto mappers = mappers_.find(touched.build);
    if (mappers == mappers_.end()) return false;
    return std::all_of(mappers->second.begin(), mappers->second.end(), [&](pid_t pid) {
      return std::any_of(known_.begin(), known_.end(), [&](const Known& it) { return it.pid == pid; });
    });
  }
  bool MayBeNamed(const Touched& touched, std::string_view name, bool in_profile) const override {
    if (was_replaced_) return name != kForeignName;  // The old list may have been read in part.
    const std::vector<size_t>& all = jit_.at({touched.pid, touched.slot});
    const size_t first = in_profile || all.empty() ? 0 : all.size() - 1;
    return std::any_of(all.begin() + static_cast<ptrdiff_t>(first), all.end(),
                       [&](size_t number) { return name == JitName(number); });
  }
  bool MayLackReason(const Touched& touched) const override {
    return touched.inherited || (touched.jit && was_replaced_);
  }
  bool MustBeNamed(const Touched& touched) const override { return listed_.contains({touched.pid, *touched.jit}); }

 private:
  const std::string& wrong() const { return wrong_.empty() ? observer_.wrong() : wrong_; }
  void Wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  Reply Tell(size_t actor, const Command& command) {
    Reply reply;
    if (walk_.own && actor == 0) {
      reply = local_.Do(command);
    } else if (send(lines_.ours(actor), &command, sizeof(command), MSG_NOSIGNAL) != sizeof(command) ||
               recv(lines_.ours(actor), &reply, sizeof(reply), 0) != sizeof(reply)) {
      std::snprintf(reply.what, sizeof(reply.what), "process %zu does not answer", actor);
    }
    if (!reply.fine) Wrong(reply.what);
    return reply;
  }

  // The same move by a process that exists, with a library that is loaded, or not, and a function that is made: those
  // that follow what the move names. So few moves have no effect.
  Move Possible(Move move) const {
    while (known_[move.actor].pid == 0) move.actor = (move.actor + 1) % kActors;
    const Known& actor = known_[move.actor];
    const bool calls = move.step == Step::kCall || move.step == Step::kCallThread || move.step == Step::kClose;
    for (size_t i = 0; i < kFiles && (calls || move.step == Step::kOpen); ++i) {
      if (move.file < kLibraries && actor.loaded[move.file].has_value() == calls) break;
      move.file = (move.file + 1) % kFiles;
    }
    for (size_t i = 0; i < kSlots && move.step == Step::kCallJit && !actor.jit[move.number % kSlots]; ++i)
      ++move.number;
    return move;
  }

  void Make(const Move& move) {
    Known& actor = known_[move.actor];
    Files& files = files_[actor.files];
    std::optional<size_t>& build = files[move.file];
    const bool is_library = move.file < kLibraries, is_loaded = is_library && actor.loaded[move.file];
    switch (move.step) {
      case Step::kOpen:
        if (is_library && build && !is_loaded) Open(move.actor, move.file);
        return;
      case Step::kClose:
        if (!is_loaded) return;
        actor.loaded[move.file].reset();
        Tell(move.actor, {What::kClose, move.file});
        return;
      case Step::kCall:
      case Step::kCallThread:
        if (is_loaded) Call(move);
        return;
      case Step::kJit: return MakeFunction(move);
      case Step::kForeignJit:
        if (geteuid() == 0) MakeFunctionOfOther(move);
        return;
      case Step::kCallJit:
        if (actor.jit[move.number % kSlots]) CallJit(move);
        return;
      case Step::kRebuild: return Write(move.actor, move.file, true, false);
      case Step::kRewrite:
        if (build && !IsMapped(*build)) Write(move.actor, move.file, true, true);
        return;
      case Step::kBack: return Write(move.actor, move.file, false, false);
      case Step::kDelete:
        if (build) Tell(move.actor, {What::kDelete, move.file});
        return build.reset();
      case Step::kRename: return Rename(move.actor, move.file);
      case Step::kFork: return Fork(move, false);
      case Step::kContainer: return Fork(move, true);
      case Step::kEnd:
        if (move.actor != 0) End(move.actor);
        return;
      case Step::kExec:
        if (files[kProgram]) Execute(move.actor);
        return;
      case Step::kDrain: return observer_.Drain();
      case Step::kName: return observer_.NameAll();
      case Step::kAddProcess:
        if (!walk_.own || move.actor == 0) observer_.AddProcess(actor.pid);
        return;
      case Step::kStop:
        running_ = false;
        return observer_.Check(observer_.sampler().Stop(), "Stop");
      case Step::kStart: return Start();
      case Step::kPause: paused_ = true; return observer_.Check(observer_.sampler().Pause(), "Pause");
      case Step::kResume: paused_ = false; return observer_.Check(observer_.sampler().Resume(), "Resume");
      case Step::kAge: return testing::Sleep(kLongestTickNs + 1'000'000);
      case Step::kSteps: return;
    }
  }

  void Start() {
    if (running_) return;
    running_ = true;
    observer_.Check(observer_.sampler().Start(), "Start");
  }

  void Open(size_t actor, size_t file) {
    const size_t build = *files_[known_[actor].files][file];
    // A file that is loaded already, under another name, is not loaded again.
    for (const std::optional<size_t>& loaded : known_[actor].loaded) {
      if (loaded == build) return;
    }
    if (!Tell(actor, {What::kOpen, file, build}).fine) return;
    known_[actor].loaded[file] = build;
    mappers_[build].insert(known_[actor].pid);
  }

  void Call(const Move& move) {
    const size_t build = *known_[move.actor].loaded[move.file];
    const size_t function = move.number % BuildOf(build).functions.size();
    const What what = move.step == Step::kCall ? What::kCall : What::kCallThread;
    const Reply reply = Tell(move.actor, {what, move.file, build * 16 + function});
    Expect(move.actor,
           {.pid = reply.pid, .address = reply.address, .build = build, .function = function, .file = move.file});
  }

  void Expect(size_t actor, Touched touched) {
    touched.actor = actor;
    const bool is_target = !walk_.own || actor == 0;
    touched.sampled = is_target && running_ && !paused_;
    touched.hidden = is_target && !touched.sampled;
    observer_.Expect(touched);
  }

  void MakeFunction(const Move& move) {
    Known& actor = known_[move.actor];
    const size_t slot = move.number % kSlots, number = next_++;
    if (!local_.has_jit() || !Tell(move.actor, {What::kJit, slot, number}).fine) return;
    actor.jit[slot] = number;
    actor.inherited[slot] = false;
    listed_.insert({actor.pid, number});
    listers_.insert(actor.pid);
    jit_[{actor.pid, slot}].push_back(number);
  }

  void MakeFunctionOfOther(const Move& move) {
    Known& actor = known_[move.actor];
    const size_t slot = move.number % kSlots;
    const Command command{.what = What::kJit, .file = slot, .number = next_, .by_other = true};
    if (!local_.has_jit() || !Tell(move.actor, command).fine) return;
    actor.jit[slot] = next_++;
    actor.inherited[slot] = false;
    was_replaced_ = true;
    listers_.insert(actor.pid);
    std::erase_if(listed_, [&](const auto& listed) { return listed.first == actor.pid; });
    CallJit(move);
  }

  void CallJit(const Move& move) {
    const size_t slot = move.number % kSlots;
    const Reply reply = Tell(move.actor, {What::kCallJit, slot});
    Expect(move.actor, {.pid = reply.pid,
                        .address = reply.address,
                        .jit = known_[move.actor].jit[slot],
                        .slot = slot,
                        .inherited = known_[move.actor].inherited[slot]});
  }

  bool IsMapped(size_t build) const {
    return std::any_of(known_.begin(), known_.end(), [&](const Known& actor) {
      return actor.pid != 0 && std::find(actor.loaded.begin(), actor.loaded.end(), build) != actor.loaded.end();
    });
  }

  void Write(size_t actor, size_t file, bool is_new, bool in_place) {
    const size_t view = known_[actor].files;
    if (!is_new && !earlier_.contains({view, file})) return;
    const size_t build = is_new ? next_++ : earlier_.at({view, file});
    std::optional<size_t>& present = files_[view][file];
    if (present && !in_place) earlier_[{view, file}] = *present;
    if (!Tell(actor, {What::kWrite, file, build, in_place}).fine) return;
    present = build;
    views_[build] = view;
    paths_.insert({build, file});
  }

  void Rename(size_t actor, size_t file) {
    Files& files = files_[known_[actor].files];
    const size_t to = (file + 1) % kLibraries;
    if (file == kProgram || !files[file]) return;
    if (!Tell(actor, {What::kRename, file, to}).fine) return;
    files[to] = std::exchange(files[file], std::nullopt);
    paths_.insert({*files[to], to});
  }

  void Fork(const Move& move, bool container) {
    const auto free = std::find_if(known_.begin(), known_.end(), [](const Known& it) { return it.pid == 0; });
    if (free == known_.end() || (container && !may_mount_)) return;
    const auto number = static_cast<size_t>(free - known_.begin());
    const Reply reply = Tell(move.actor, {container ? What::kContainer : What::kFork, 0, number});
    if (!reply.fine) return;
    *free = known_[move.actor];
    free->pid = reply.pid;
    free->parent = move.actor;
    if (!running_) free->inherited.fill(true);
    for (size_t slot = 0; slot < kSlots; ++slot) jit_[{free->pid, slot}] = jit_[{known_[move.actor].pid, slot}];
    Tell(number, {What::kPing});
    if (!container) return;
    free->files = files_.size();
    files_.emplace_back();
    for (size_t file = 0; file < kFiles; ++file) Write(number, file, true, false);
  }

  void End(size_t actor) {
    for (size_t child = 1; child < kActors; ++child) {
      if (known_[child].pid != 0 && known_[child].parent == actor) End(child);
    }
    const Command last{What::kExit};
    send(lines_.ours(actor), &last, sizeof(last), MSG_NOSIGNAL);
    Tell(known_[actor].parent, {What::kReap, 0, 0, false, known_[actor].pid});
    known_[actor].pid = 0;
  }

  void Execute(size_t actor) {
    const size_t build = *files_[known_[actor].files][kProgram];
    const Reply reply = Tell(actor, {What::kExec, kProgram});
    mappers_[build].insert(reply.pid);
    for (size_t k = 0; k < BuildOf(build).functions.size(); ++k) {
      Touched touched{.pid = reply.pid,
                      .address = testing::ProgramByte(k),
                      .build = build,
                      .function = k,
                      .file = kProgram,
                      .offset = testing::made::kStoreInProgram};
      touched.sampled = !walk_.own && running_ && !paused_;
      touched.hidden = !walk_.own && !touched.sampled;
      observer_.Expect(touched);
    }
  }

  void Finish() {
    observer_.Check(observer_.sampler().Stop(), "Stop");
    if (paused_) observer_.Check(observer_.sampler().Resume(), "Resume");
    for (int i = 0; i < 2; ++i) observer_.Drain();
    observer_.NameAll();
    observer_.CheckAllSampled();
    for (const pid_t pid : listers_) unlink(absl::StrFormat("/tmp/perf-%d.map", pid).c_str());
  }

  const Walk& walk_;
  const std::string folder_;
  const bool may_mount_ = MayMount(folder_);
  const Lines lines_;
  Actor local_;
  Observer observer_;
  std::array<Known, kActors> known_{};
  std::vector<Files> files_{1};
  size_t next_ = 0;  // The number of the next build or function.
  bool running_ = false, paused_ = false;
  std::map<size_t, size_t> views_;                       // By build: where its files are.
  std::set<std::pair<size_t, size_t>> paths_;            // Builds, and the files that they have been in.
  std::map<size_t, std::set<pid_t>> mappers_;            // By build: who has loaded it.
  std::map<std::pair<size_t, size_t>, size_t> earlier_;  // By view and file: a build that was there before.
  std::set<pid_t> listers_;                              // Processes that have a list, or had one.
  bool was_replaced_ = false;                            // A list, by that of another user.
  std::set<std::pair<pid_t, size_t>> listed_;            // Functions that were made, with the process that lists them.
  std::map<std::pair<pid_t, size_t>, std::vector<size_t>> jit_;  // By process and slot, the latest last.
  std::string wrong_;
};

size_t g_named = 0, g_unnamed = 0;  // Lookups of all walks: with a name, and without.

// Walks in a process of its own. What is wrong; empty if nothing is.
std::string WalkOverModules(const Walk& walk) {
  const testing::TempFolder folder;
  std::array<int, 2> pipes{};
  if (pipe(pipes.data()) != 0) return "there is no pipe";
  const pid_t child = fork();
  if (child == 0) {
    Walker walker(walk, folder.path());
    const std::string wrong = walker.Run(), text = walker.Counts() + " " + wrong;
    const bool written = write(pipes[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(pipes[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(pipes[0], text.data(), text.size());
  close(pipes[0]);
  int status = -1;
  waitpid(child, &status, 0);
  size_t named = 0, unnamed = 0;
  int at = 0;
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  if (status != 0 || std::sscanf(text.c_str(), "%zu %zu %n", &named, &unnamed, &at) != 2)
    return absl::StrFormat("the walker ends with status %d", status);
  g_named += named;
  g_unnamed += unnamed;
  return text.substr(static_cast<size_t>(at));
}

void WalkModulesFor(uint64_t seconds) {
  WalkFor(seconds, "modules", MakeWalk, WalkOverModules, [](auto& shrinker) {
    shrinker.TryWithout(&Walk::moves);
    shrinker.Try([](Walk& less) { less.tmpfs = false; });
    shrinker.Try([](Walk& less) { less.late = false; });
  });
  std::printf("modules: %zu names, %zu unknown\n", g_named, g_unnamed);
}

TEST_CASE("random lives of modules and processes: each name is right or unknown", "[symbolizer][module_walk][law]") {
  if (!testing::kThreadsAfterFork) SKIP_TEST("ThreadSanitizer ends a forked child that starts a thread");
  const absl::StatusOr<Sampler> sampler = Sampler::Open({.events = {{.event = "page-faults:u"}}, .side_band = true});
  if (!sampler.ok()) SKIP_TEST(std::string(sampler.status().message()));
  WalkModulesFor(kUsualSeconds);
}

TEST_CASE("random lives of modules and processes, for long", "[.heavy][law]") { WalkModulesFor(kHeavySeconds); }

}  // namespace
}  // namespace perfkit::walk

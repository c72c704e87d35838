// stat: counts a command, threads, processes, CPUs or the system, as `simpleperf stat` and `perf stat` do.
//
//   stat -e cycles,instructions,page-faults gzip -k big.tar
//   stat -a --cpu 0,1 -e context-switches -d 2
#include <getopt.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/child.h"
#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "perfkit/scope.h"

namespace {

// simpleperf stat's own choice.
constexpr char kDefaultEvents[] =
    "cpu-cycles,stalled-cycles-frontend,stalled-cycles-backend,instructions,branch-instructions,branch-misses,"
    "task-clock,context-switches,page-faults";

constexpr char kUsage[] =
    "usage: stat [options] [command [arguments]]\n"
    "  -e, --event LIST   events, separated by commas; {a,b} is a group (default: as simpleperf stat)\n"
    "  -a, --all          the whole system\n"
    "      --cpu LIST     these CPUs, separated by commas\n"
    "  -p, --pid LIST     these processes\n"
    "  -t, --tid LIST     these threads\n"
    "      --no-inherit   not the threads and children that start later\n"
    "  -d, --duration S   for S seconds; without it until the command ends, or Ctrl-C\n"
    "      --verbose      also how each event was read\n"
    "  -h, --help         this\n";

struct Options {
  std::string events = kDefaultEvents;
  std::vector<perfkit::Target> targets;
  bool inherit = true;
  bool verbose = false;
  std::optional<double> seconds;
  std::vector<std::string> command;
};

volatile std::sig_atomic_t g_interrupted = 0;

// Prints why and ends, as tools do for a wrong command line.
[[noreturn]] void Refuse(const std::string& why) {
  fprintf(stderr, "stat: %s\n", why.c_str());
  exit(2);
}

// "1,2,3" as targets of one kind.
void AddTargets(const char* list, perfkit::Target (*make)(int), std::vector<perfkit::Target>& targets) {
  for (const char* at = list;; ++at) {
    char* end;
    const long id = strtol(at, &end, 10);
    if (end == at || id < 0 || (*end != ',' && *end != 0)) Refuse(std::string("not a list of numbers: ") + list);
    targets.push_back(make(static_cast<int>(id)));
    if (*end == 0) return;
    at = end;
  }
}

Options ParseOptions(int argc, char** argv) {
  enum { kCpu = 256, kNoInherit, kVerbose };
  const option kLong[] = {
      {"event", required_argument, nullptr, 'e'},    {"all", no_argument, nullptr, 'a'},
      {"cpu", required_argument, nullptr, kCpu},     {"pid", required_argument, nullptr, 'p'},
      {"tid", required_argument, nullptr, 't'},      {"no-inherit", no_argument, nullptr, kNoInherit},
      {"duration", required_argument, nullptr, 'd'}, {"verbose", no_argument, nullptr, kVerbose},
      {"help", no_argument, nullptr, 'h'},           {nullptr, 0, nullptr, 0}};
  Options options;
  // '+': what follows the command is the command's.
  for (int key; (key = getopt_long(argc, argv, "+e:ap:t:d:h", kLong, nullptr)) != -1;) {
    switch (key) {
      case 'e': options.events = optarg; break;
      case 'a': options.targets.push_back(perfkit::Target::System()); break;
      case kCpu:
        AddTargets(
            optarg, [](int id) { return perfkit::Target::Cpu(id); }, options.targets);
        break;
      case 'p':
        AddTargets(
            optarg, [](int id) { return perfkit::Target::Process(id); }, options.targets);
        break;
      case 't':
        AddTargets(
            optarg, [](int id) { return perfkit::Target::Thread(id); }, options.targets);
        break;
      case kNoInherit: options.inherit = false; break;
      case 'd': options.seconds = atof(optarg); break;
      case kVerbose: options.verbose = true; break;
      case 'h': fputs(kUsage, stdout); exit(0);
      default: fputs(kUsage, stderr); exit(2);
    }
  }
  options.command.assign(argv + optind, argv + argc);
  if (options.command.empty() && options.targets.empty()) Refuse("nothing to count: a command, -a, --cpu, -p or -t");
  // As simpleperf: --cpu narrows -a.
  if (options.targets.size() > 1) {
    std::erase_if(options.targets, [](const perfkit::Target& t) { return t.kind == perfkit::Target::Kind::kSystem; });
  }
  return options;
}

bool CountsAnything(const perfkit::CounterSet& set) {
  for (size_t i = 0; i < set.size(); ++i) {
    if (set.reason(i).ok()) return true;
  }
  return false;
}

// One set a target; all have the same events, so their counts add up.
std::vector<perfkit::CounterSet> OpenAll(const Options& options, std::vector<perfkit::Target> targets) {
  const auto events = perfkit::ParseEventList(options.events);
  if (!events.ok()) Refuse(std::string(events.status().message()));
  std::vector<perfkit::CounterSet> sets;
  for (perfkit::Target target : targets) {
    if (!options.inherit) target = target.WithoutInherit();
    auto set = perfkit::CounterSet::Open(*events, target, {.require_all = false});
    if (!set.ok()) Refuse(std::string(set.status().message()));
    if (!CountsAnything(*set)) Refuse(std::string(set->reason(0).message()));
    sets.push_back(*std::move(set));
  }
  return sets;
}

// Waits for the command, the duration, or Ctrl-C; the code to exit with.
int WaitUntilDone(const Options& options, std::optional<perfkit::Child>& child) {
  if (child) {
    if (const absl::Status started = child->Start(); !started.ok()) {
      fprintf(stderr, "stat: %s\n", std::string(started.message()).c_str());
      exit(absl::IsNotFound(started) ? 127 : 126);
    }
    const auto ended = child->Wait();
    return ended.ok() ? ended->shell_code() : 1;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds.value_or(1e9));
  while (g_interrupted == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

void PrintReadPaths(const perfkit::CounterSet& set) {
  for (size_t i = 0; i < set.size(); ++i) {
    const absl::Status reason = set.reason(i);
    const std::string how =
        reason.ok() ? std::string(perfkit::ReadPathName(set.path(i))) : std::string(reason.message());
    printf("  %-28s %s\n", std::string(set.name(i)).c_str(), how.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options = ParseOptions(argc, argv);
  std::optional<perfkit::Child> child;
  if (!options.command.empty()) {
    auto spawned = perfkit::Child::Spawn(options.command);
    if (!spawned.ok()) Refuse(std::string(spawned.status().message()));
    child = *std::move(spawned);
    if (options.targets.empty()) options.targets.push_back(child->target());
  }
  const std::vector<perfkit::CounterSet> sets = OpenAll(options, options.targets);
  signal(SIGINT, [](int) { g_interrupted = 1; });

  std::vector<perfkit::Snapshot> begin(sets.size()), end(sets.size());
  for (size_t i = 0; i < sets.size(); ++i) sets[i].Read(begin[i]);
  const auto started = std::chrono::steady_clock::now();
  const int code = WaitUntilDone(options, child);
  const auto wall = std::chrono::steady_clock::now() - started;
  perfkit::ScopeTotals total;
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].Read(end[i]);
    total.Add(sets[i], begin[i], end[i]);
  }

  const auto wall_ns = static_cast<uint64_t>(std::chrono::nanoseconds(wall).count());
  fputs(perfkit::FormatTable(sets[0], total, wall_ns).c_str(), stdout);
  printf("\nTotal time: %.6f s\n", static_cast<double>(wall_ns) / 1e9);
  if (options.verbose) PrintReadPaths(sets[0]);
  return code;
}

// Reads the options with getopt_long, then checks whether they agree.
#include "options.h"

#include <getopt.h>

#include <cstdio>
#include <cstdlib>

#include "tool/output.h"

namespace stat_tool {

const char kUsage[] =
    "usage: stat [options] [command [arguments]]\n"
    "\n"
    "Counts a command, processes, threads, CPUs or the system. With -a, --cpu, -p or -t, counting lasts as long as\n"
    "the command.\n"
    "\n"
    "  -e, --event LIST     events, separated by commas; {a,b} is a group. Repeat it for more (default: as simpleperf\n"
    "                       stat)\n"
    "  -a, --all            the whole system\n"
    "  -C, --cpu LIST       these CPUs: 0-3,5\n"
    "  -p, --pid LIST       these processes, with children that start later, until they end\n"
    "  -t, --tid LIST       these threads, until they end\n"
    "      --no-inherit     without threads and children that start later\n"
    "  -d, --duration S     for S seconds; then ends a command that still runs\n"
    "  -I, --interval MS    prints the counts every MS milliseconds\n"
    "  -r, --repeat N       runs the command N times; prints the mean and its standard error\n"
    "  -x SEP               prints one line for each event, with the fields of perf stat -x, separated by SEP\n"
    "  -j, --json-output    prints one JSON object for each event, with the keys of perf stat -j\n"
    "  -o, --output FILE    prints to FILE\n"
    "      --verbose        also prints how each event was read\n"
    "  -h, --help           prints this text\n";

namespace {

// simpleperf stat's own choice.
constexpr char kDefaultEvents[] =
    "cpu-cycles,stalled-cycles-frontend,stalled-cycles-backend,instructions,branch-instructions,branch-misses,"
    "task-clock,context-switches,page-faults";

void Want(bool ok, const char* option, const char* what) {
  if (!ok) Refuse(std::string(option) + " wants " + what + ", not '" + optarg + "'");
}

void SetInterval(Options* options) {
  double ms = 0;
  Want(tool::ParseNumber(optarg, 1.0, &ms) && ms <= 1e9, "-I", "a number of milliseconds");
  options->interval = ms / 1000;
}

void SetFormat(Format format, Options* options) {
  if (options->format != Format::kTable && options->format != format) Refuse("-x and -j exclude each other");
  options->format = format;
}

void SetSeparator(Options* options) {
  const std::string_view text = optarg;
  Want(!text.empty(), "-x", "a separator");
  SetFormat(Format::kCsv, options);
  options->separator = text == "\\t" ? "\t" : text;
}

void AddEvents(Options* options) {
  Want(*optarg != '\0', "-e", "a list of events");
  if (!options->events.empty()) options->events += ',';
  options->events += optarg;
}

// What does not go together.
void Check(const Options& options) {
  if (options.command.empty() && options.names.empty()) Refuse("nothing to count: name a command, -a, --cpu, -p or -t");
  if (options.runs > 1 && options.command.empty()) Refuse("-r requires a command");
  if (options.runs > 1 && options.interval) Refuse("-r and -I exclude each other");
}

}  // namespace

void Refuse(const std::string& why) {
  fprintf(stderr, "stat: %s\n", why.c_str());
  exit(2);
}

std::string EventsOf(const Options& options) { return options.events.empty() ? kDefaultEvents : options.events; }

Options ParseOptions(int argc, char** argv) {
  enum { kNoInherit = 256, kVerbose };
  const option kLong[] = {{"event", required_argument, nullptr, 'e'},
                          {"all", no_argument, nullptr, 'a'},
                          {"cpu", required_argument, nullptr, 'C'},
                          {"pid", required_argument, nullptr, 'p'},
                          {"tid", required_argument, nullptr, 't'},
                          {"no-inherit", no_argument, nullptr, kNoInherit},
                          {"duration", required_argument, nullptr, 'd'},
                          {"interval-print", required_argument, nullptr, 'I'},
                          {"repeat", required_argument, nullptr, 'r'},
                          {"field-separator", required_argument, nullptr, 'x'},
                          {"json-output", no_argument, nullptr, 'j'},
                          {"output", required_argument, nullptr, 'o'},
                          {"verbose", no_argument, nullptr, kVerbose},
                          {"help", no_argument, nullptr, 'h'},
                          {nullptr, 0, nullptr, 0}};
  Options options;
  tool::TargetNames& names = options.names;
  // '+': what follows the command is the command's.
  for (int key; (key = getopt_long(argc, argv, "+e:aC:p:t:d:I:r:x:jo:h", kLong, nullptr)) != -1;) {
    switch (key) {
      case 'e': AddEvents(&options); break;
      case 'a': names.whole_system = true; break;
      case 'C': Want(tool::ParseCpus(optarg, &names.cpus), "--cpu", "a list of CPUs, such as 0-3,5"); break;
      case 'p': Want(tool::ParseIds(optarg, &names.processes), "-p", "a list of process ids"); break;
      case 't': Want(tool::ParseIds(optarg, &names.threads), "-t", "a list of thread ids"); break;
      case kNoInherit: options.inherit = false; break;
      case 'd': Want(tool::ParseSeconds(optarg, &options.seconds), "-d", "a number of seconds"); break;
      case 'I': SetInterval(&options); break;
      case 'r': Want(tool::ParseNumber(optarg, 1, &options.runs), "-r", "a number of runs"); break;
      case 'x': SetSeparator(&options); break;
      case 'j': SetFormat(Format::kJson, &options); break;
      case 'o': options.output = optarg; break;
      case kVerbose: options.verbose = true; break;
      case 'h': exit(tool::PrintText("stat", kUsage) ? 0 : 2);
      default: fputs(kUsage, stderr); exit(2);
    }
  }
  options.command.assign(argv + optind, argv + argc);
  Check(options);
  return options;
}

}  // namespace stat_tool

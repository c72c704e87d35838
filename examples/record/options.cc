// One table of options; each sets its member of Options.
#include "options.h"

#include <perfkit/event.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace record {

const char kUsage[] =
    "usage: record [options] [command [arguments]]\n"
    "\n"
    "Samples a command, processes, threads, CPUs or the system, and reports where their time or their events went.\n"
    "With -a, --cpu, -p or -t, sampling lasts as long as the command.\n"
    "Without a target and a command, record samples itself: its threads compress this machine's headers with zstd.\n"
    "\n"
    "What is sampled:\n"
    "  -e LIST              events, separated by commas (default: cpu-clock); any that perf knows, with :u and :k\n"
    "  -f HZ                samples a second for each thread (default: 1000 for clocks and hardware events)\n"
    "  -c N                 instead, a sample every N events; for clocks every N nanoseconds (default: 1 for all "
    "others)\n"
    "  -a                   the whole system\n"
    "      --cpu LIST       these CPUs: 0-3,5\n"
    "  -p LIST              these processes, with children that start later, until they end\n"
    "  -t LIST              these threads, until they end\n"
    "  -b                   also takes the branches before each sample, as -j any; shows only their number\n"
    "  -j FILTER            the same for some branches only: any, any_call, any_ret, ind_call, cond, u, k, ...\n"
    "      --call-graph HOW fp (frame pointers), dwarf[,BYTES] (registers and stack), or no\n"
    "  -g                   --call-graph dwarf\n"
    "  -m PAGES             size of each ring in pages, a power of two (default: 128)\n"
    "      --no-inherit     without threads and children that start later\n"
    "      --duration S     for S seconds\n"
    "      --workers N      number of threads that compress (default: one for each CPU)\n"
    "\n"
    "What is shown afterwards: a table for each event, and with stacks a call tree.\n"
    "      --sort LIST      rows of the table: one or several of thread, module, function, line (default:\n"
    "                       module,function). With thread, each thread has a call tree of its own\n"
    "      --children       sorts the table by total (self and all calls) instead of self\n"
    "      --bottom-up      shows the call tree from the sampled functions to their callers\n"
    "      --percent-limit P  leaves out functions and calls below P percent (default: 0.5)\n"
    "      --top N          at most N rows in each table (default: 40)\n"
    "      --no-inline      counts inlined calls for the function that contains them\n"
    "      --no-demangle    shows names as the linker has them\n"
    "  -o FILE              also writes the profile, in the format of the name's extension: .pb.gz, .html, .json.gz,\n"
    "                       .pftrace, .folded, .callgrind, .txt ... May be given several times\n"
    "  -h, --help           prints this text\n"
    "\n"
    "There is no file of records for a later report: names depend on what is mapped when a sample is taken, so record\n"
    "looks them up itself. -o writes them in formats that other tools read: go tool pprof -top out.pb.gz.\n";

namespace {

using tool::ParseNumber;

constexpr uint16_t kDefaultStackBytes = 8192;

// Events may have commas of their own: between slashes, and in braces.
bool ParseEvents(std::string_view text, Options* options) {
  const auto events = perfkit::SplitEventList(text);
  if (!events.ok() || events->empty()) return false;
  options->events.insert(options->events.end(), events->begin(), events->end());
  return true;
}

bool ParseCallGraph(std::string_view text, Options* options) {
  const std::string_view kind = text.substr(0, text.find(','));
  uint32_t bytes = kDefaultStackBytes;
  if (kind.size() < text.size() && !ParseNumber(text.substr(kind.size() + 1), 8u, &bytes)) return false;
  if (kind == "dwarf") options->stack = perfkit::CallStack::UserDump(bytes);
  if (kind == "fp" && kind == text) options->stack = perfkit::CallStack::FramePointers();
  if (kind == "no" && kind == text) options->stack = perfkit::CallStack::None();
  options->report.call_tree = options->stack.kind != perfkit::CallStack::Kind::kNone;
  return kind == "dwarf" || (kind == text && (kind == "fp" || kind == "no"));
}

bool ParseBranches(std::string_view text, Options* options) {
  const auto filter = perfkit::BranchFilter::Parse(text);
  if (filter.ok()) options->branches = *filter;
  return filter.ok();
}

// As perf's: the table tells lines apart by each of the keys. A function is told by its module, too, and a line by its
// function.
bool ParseSort(std::string_view text, Options* options) {
  using perfkit::ReportKey;
  constexpr std::pair<std::string_view, ReportKey> kFromTheFinest[] = {
      {"line", ReportKey::kLine}, {"function", ReportKey::kFunction}, {"module", ReportKey::kModule}};
  std::vector<std::string_view> words;
  for (;; text.remove_prefix(text.find(',') + 1)) {
    words.push_back(text.substr(0, text.find(',')));
    if (text.find(',') == text.npos) break;
  }
  const auto erase = [&](std::string_view word) { return std::erase(words, word) != 0; };
  options->report.by_thread = erase("thread");
  options->report.key = ReportKey::kThread;
  for (const auto& [word, key] : kFromTheFinest) {
    if (erase(word) && options->report.key == ReportKey::kThread) options->report.key = key;
  }
  return words.empty();
}

bool ParsePercent(std::string_view text, Options* options) {
  return ParseNumber(text, 0.0, &options->report.min_percent) && options->report.min_percent <= 100;
}

bool ParsePages(std::string_view text, Options* options) {
  return ParseNumber<size_t>(text, 1, &options->ring_pages) && (options->ring_pages & (options->ring_pages - 1)) == 0 &&
         options->ring_pages <= size_t{1} << 20;
}

template <class Rate>
bool ParseRate(std::string_view text, Options* options) {
  uint64_t number = 0;
  if (!ParseNumber<uint64_t>(text, 1, &number)) return false;
  options->rate = Rate{number};
  return true;
}

// An option: its names, what its value must be (nullptr: it has none), and what it does. False: not such a value.
struct Known {
  std::string_view name, other_name;
  const char* value;
  bool (*set)(std::string_view value, Options* options);
};

using V = std::string_view;
using O = Options;
constexpr Known kOptions[] = {
    {"-e", "--event", "events, separated by commas", [](V v, O* o) { return ParseEvents(v, o); }},
    {"-f", "-F", "a number of samples a second", [](V v, O* o) { return ParseRate<perfkit::Frequency>(v, o); }},
    {"-c", "--count", "a number of events", [](V v, O* o) { return ParseRate<perfkit::Period>(v, o); }},
    {"-a", "--all", nullptr, [](V, O* o) { return o->names.whole_system = true; }},
    {"--cpu", "-C", "a list of CPUs, such as 0-3,5", [](V v, O* o) { return tool::ParseCpus(v, &o->names.cpus); }},
    {"-p", "--pid", "a list of process ids", [](V v, O* o) { return tool::ParseIds(v, &o->names.processes); }},
    {"-t", "--tid", "a list of thread ids", [](V v, O* o) { return tool::ParseIds(v, &o->names.threads); }},
    {"-b", "--branch-any", nullptr, [](V, O* o) { return ParseBranches("any", o); }},
    {"-j", "--branch-filter", "kinds of branches, such as any_call,u", ParseBranches},
    {"--call-graph", "", "fp, dwarf, dwarf,BYTES or no", ParseCallGraph},
    {"-g", "", nullptr, [](V, O* o) { return ParseCallGraph("dwarf", o); }},
    {"-m", "--mmap-pages", "a power of two", ParsePages},
    {"--no-inherit", "", nullptr, [](V, O* o) { return o->inherit = false, true; }},
    {"--duration", "-d", "a number of seconds", [](V v, O* o) { return tool::ParseSeconds(v, &o->seconds); }},
    {"--sort", "-s", "thread, module, function or line, separated by commas", ParseSort},
    {"--children", "", nullptr, [](V, O* o) { return o->report.children = true; }},
    {"--bottom-up", "", nullptr, [](V, O* o) { return o->report.bottom_up = true; }},
    {"--percent-limit", "", "a number from 0 to 100", ParsePercent},
    {"--top", "-n", "a number of lines", [](V v, O* o) { return ParseNumber<size_t>(v, 1, &o->report.max_lines); }},
    {"--no-inline", "", nullptr, [](V, O* o) { return o->lines = false, true; }},
    {"-o", "--output", "the name of a file", [](V v, O* o) { return o->outputs.emplace_back(v), !v.empty(); }},
    {"--no-demangle", "", nullptr, [](V, O* o) { return o->demangle = false, true; }},
    {"--workers", "", "a number of threads", [](V v, O* o) { return ParseNumber(v, 1, &o->workers); }},
    {"-h", "--help", nullptr, [](V, O* o) { return o->help = true; }},
};

// Letters that differ, or are too many: enough to find what was meant among twenty words.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string Unknown(std::string_view word) {
  std::string_view nearest = kOptions[0].name;
  for (const Known& known : kOptions) {
    for (const std::string_view name : {known.name, known.other_name}) {
      if (!name.empty() && Distance(word, name) < Distance(word, nearest)) nearest = name;
    }
  }
  std::string text = "unknown option '" + std::string(word) + "'";
  // With more typing errors than in each third letter, it is another word.
  if (3 * Distance(word, nearest) > std::max(word.size(), size_t{6})) return text + "; record --help lists all";
  return text + "; did you mean '" + std::string(nearest) + "'?";
}

const Known* Find(std::string_view name) {
  for (const Known& known : kOptions) {
    if (known.name == name || (!known.other_name.empty() && known.other_name == name)) return &known;
  }
  return nullptr;
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options* options, std::string* error) {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  bool has_frequency = false, has_period = false;
  size_t i = 1;
  for (; i < words.size() && words[i][0] == '-' && words[i] != std::string_view("--"); ++i) {
    std::string_view word = words[i], value;
    const Known* known = Find(word);
    const size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
    if (known == nullptr && equals != word.npos) known = Find(word.substr(0, equals));
    if (known == nullptr) return *error = Unknown(word.substr(0, equals)), false;
    const bool has_value = equals != word.npos || (known->value != nullptr && i + 1 < words.size());
    if (known->value != nullptr && has_value) value = equals != word.npos ? word.substr(equals + 1) : words[++i];
    if (known->value == nullptr && equals != word.npos)
      return *error = std::string(known->name) + " takes no value", false;
    if ((known->value != nullptr && !has_value) || !known->set(value, options)) {
      *error = std::string(known->name) + " wants " + known->value + ", not '" + std::string(value) + "'";
      return false;
    }
    has_frequency |= known->name == "-f";
    has_period |= known->name == "-c";
  }
  if (i < words.size() && words[i] == std::string_view("--")) ++i;
  options->command.assign(words.begin() + static_cast<ptrdiff_t>(i), words.end());
  if (has_frequency && has_period) *error = "-f and -c exclude each other: samples come by time, or by events";
  return error->empty();
}

}  // namespace record

// The table of programs, and their inputs.
#include "bench/unwind/workloads.h"

#include <filesystem>

namespace bench {
namespace {

// Instantiates templates of the standard library until the compiler is busy for seconds.
constexpr char kHeavySource[] = R"(#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

template <int kSeed>
struct Tag {
  int value = kSeed;
  bool operator<(const Tag& other) const { return value < other.value; }
};

template <int kSeed>
size_t Work(const std::string& text) {
  std::map<Tag<kSeed>, std::vector<std::string>> by_tag;
  std::unordered_map<std::string, std::deque<Tag<kSeed>>> by_text;
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int> any(0, 100);
  std::vector<Tag<kSeed>> tags(100);
  for (auto& tag : tags) tag.value = any(random), by_tag[tag].push_back(text), by_text[text].push_back(tag);
  std::stable_sort(tags.begin(), tags.end());
  std::function<bool(const Tag<kSeed>&)> small = [&](const Tag<kSeed>& tag) { return tag.value < kSeed; };
  return by_tag.size() + by_text.size() + std::count_if(tags.begin(), tags.end(), small);
}

template <int... kSeeds>
size_t All(const std::string& text, std::integer_sequence<int, kSeeds...>) { return (Work<kSeeds>(text) + ...); }

size_t Everything(const std::string& text) {
  std::wregex wide(L"[a-z]+[0-9]*x");
  std::regex narrow("[a-z]+[0-9]*x");
  return All(text, std::make_integer_sequence<int, 40>()) + std::regex_match(text, narrow);
}
)";

constexpr char kQueries[] = R"(CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INTEGER);
CREATE TABLE sale(item INTEGER, day INTEGER, count INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
INSERT INTO item SELECT i, printf('item-%05x', i * 7919 % 65536), i % 97 * 0.25, i % 13 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)
INSERT INTO sale SELECT i * 31 % 20000, i % 365, i % 7 FROM n;
CREATE INDEX by_name ON item(name);
CREATE INDEX by_item ON sale(item);
WITH RECURSIVE round(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM round LIMIT 1000)
SELECT i, (SELECT count(*) FROM (SELECT kind, sum(price * count) AS money, max(upper(name)) FROM item JOIN sale
  ON item.id = sale.item WHERE day % 12 = i % 12 AND name LIKE '%a%' GROUP BY kind, day ORDER BY money DESC)),
  (SELECT group_concat(substr(name, 5), '/') FROM (SELECT DISTINCT name FROM item WHERE price > i % 20 ORDER BY price))
FROM round;
)";

constexpr char kPython[] = R"(import json, re
def fib(n):
    return n if n < 2 else sum(map(fib, (n - 1, n - 2)))
class Tree:
    def __init__(self, depth):
        self.below = [Tree(depth - 1) for _ in range(3)] if depth else []
    def __iter__(self):
        for tree in self.below:
            yield from tree
        yield len(self.below)
while True:
    fib(18)
    sum(Tree(6))
    words = [json.loads(json.dumps({"name": "w%d" % i, "of": [i, i * 2.5]})) for i in range(500)]
    sorted(words, key=lambda word: re.sub("[0-9]", lambda digit: chr(97 + int(digit.group())), word["name"]))
)";

constexpr char kPerl[] = R"(sub tree { my $depth = shift; return $depth ? [map { tree($depth - 1) } 1 .. 3] : [$depth] }
sub total { my $at = shift; my $sum = 0; $sum += ref $_ ? total($_) : 1 for @$at; return $sum }
while (1) {
  my $tree = tree(7);
  my @words = map { sprintf("%x-%d", $_ * 7919 % 65536, total($tree->[0])) } 1 .. 50;
  my %by = map { my $word = $_; $word =~ s/([a-f]+)/uc($1)/ge; ($word => length) } sort { lc $a cmp lc $b } @words;
}
)";

constexpr char kCMake[] = R"(cmake_minimum_required(VERSION 3.20)
function(walk depth)
  if(depth GREATER 0)
    math(EXPR below "${depth} - 1")
    foreach(i RANGE 1)
      walk(${below})
    endforeach()
  else()
    string(REGEX REPLACE "([a-z])([0-9]+)z?" "\\2\\1" text "a1b2c3d4e5f6")
    list(APPEND words ${text} ${depth})
    list(SORT words)
  endif()
endfunction()
while(TRUE)
  walk(9)
endwhile()
)";

constexpr char kJavaScript[] = R"js(class Tree {
  constructor(depth) {
    this.below = [];
    for (let i = 0; depth > 0 && i < 3; ++i) this.below.push(new Tree(depth - 1));
  }
  size() { return this.below.reduce((sum, tree) => sum + tree.size(), 1); }
}
class Parser {
  constructor(text) { this.text = text; this.at = 0; }
  list() {
    const all = [];
    while (this.at < this.text.length && this.text[this.at] !== ')') all.push(this.item());
    return all;
  }
  item() {
    const first = this.text[this.at++];
    if (first !== '(') return first;
    const inner = this.list();
    ++this.at;
    return inner;
  }
}
const depth = (list) => 1 + list.map((item) => Array.isArray(item) ? depth(item) : 0).reduce((a, b) => Math.max(a, b), 0);
const text = '(a(bc(d)e)((f)g)h)'.repeat(200);
for (let sum = 0; ; sum = 0) {
  sum += new Tree(7).size();
  const lists = new Parser(text).list();
  const words = JSON.parse(JSON.stringify(lists)).map((list, i) => 'w' + (i * 7919 % 1000) + depth(list));
  words.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  sum += words.map((word) => word.replace(/[0-9]/g, (digit) => String.fromCharCode(97 + Number(digit)))).length;
}
)js";

constexpr Input kInputs[] = {
    {"heavy.cc", kHeavySource}, {"queries.sql", kQueries}, {"walk.py", kPython},
    {"walk.pl", kPerl},         {"walk.cmake", kCMake},    {"walk.js", kJavaScript},
};

constexpr Workload kWorkloads[] = {
    {"sqlite3", "exec sqlite3 :memory: < queries.sql > /dev/null", 1500},
    {"python3", "exec python3 walk.py", 1500},
    {"cc1plus", "exec g++ -std=c++17 -O2 -S -o /dev/null heavy.cc", 1500},
    {"clang", "exec clang++ -std=c++17 -O2 -c -o /dev/null heavy.cc", 2500, true},
    {"xz", "exec xz -9 -T1 -c $(g++ -print-prog-name=cc1plus) > /dev/null", 1500},
    {"perl", "exec perl walk.pl", 1500},
    {"cmake", "exec cmake -P walk.cmake", 1500},
    {.name = "node", .command = "exec node walk.js", .samples = 1500, .guesses = true},
};

constexpr Workload kStitched[] = {
    {"sqlite3_short", kWorkloads[0].command, 10'000},
    {"python3_short", kWorkloads[1].command, 10'000},
};

}  // namespace

std::span<const Workload> Workloads() { return kWorkloads; }
std::span<const Workload> StitchedWorkloads() { return kStitched; }
std::span<const Input> Inputs() { return kInputs; }

std::string CaptureFolder() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "captures").string();
}
std::string CapturePath(const Workload& workload) { return CaptureFolder() + "/" + workload.name + ".records"; }

}  // namespace bench

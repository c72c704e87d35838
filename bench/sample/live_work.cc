// Code that depends on its caches, which samples displace.
#include "bench/sample/live_work.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#if PERFKIT_BENCH_SQLITE
#include <sqlite3.h>
#endif

namespace bench {
namespace {

// libstdc++ matches by recursion, several frames for each character, all of it templates: as deep as clang's stacks.
void MatchWords() {
  static const std::regex pattern("(?:(?:[a-f]+|[g-m]x?|(n|o)(p|q)*)+-)*[a-z]+(\\.[0-9]*)?");
  static const std::vector<std::string> words = [] {
    std::vector<std::string> made;
    for (unsigned i = 1; i <= 400; ++i) {
      std::string word;
      for (unsigned x = i * 2654435761u, n = 0; n < 9 + i % 7; ++n, x = x * 1664525u + 1013904223u) {
        word += n % 5 == 4 ? '-' : static_cast<char>('a' + (x >> 20) % 17);
      }
      made.push_back(word + "z.12");
    }
    return made;
  }();
  size_t matches = 0;
  for (int i = 0; i < 8; ++i) {
    for (const std::string& word : words) matches += std::regex_match(word, pattern);
  }
  benchmark::DoNotOptimize(matches);
}

// A value for each name, like an interpreter's frame. Expressions are evaluated recursively.
using Variables = std::map<std::string, double, std::less<>>;

class Expression {
 public:
  virtual ~Expression() = default;
  virtual double Evaluate(Variables& variables) const = 0;
};

class Lookup : public Expression {
 public:
  explicit Lookup(std::string name) : name_(std::move(name)) {}
  double Evaluate(Variables& variables) const override { return variables[name_]; }

 private:
  std::string name_;
};

class Sum : public Expression {
 public:
  Sum(std::unique_ptr<Expression> left, std::unique_ptr<Expression> right, std::string to)
      : left_(std::move(left)), right_(std::move(right)), to_(std::move(to)) {}
  double Evaluate(Variables& variables) const override {
    const double left = left_->Evaluate(variables);
    return variables[to_] = left + right_->Evaluate(variables) / 2;
  }

 private:
  std::unique_ptr<Expression> left_, right_;
  std::string to_;
};

// An unbalanced tree: the depth of the calls is its height.
std::unique_ptr<Expression> MakeExpression(int height, unsigned seed) {
  const std::string name = "variable" + std::to_string(seed % 997);
  if (height == 0) return std::make_unique<Lookup>(name);
  return std::make_unique<Sum>(MakeExpression(height - 1, seed * 31 + 7),
                               MakeExpression(height % 8 == 0 ? height / 3 : 0, seed * 17 + 3), name);
}

void Interpret() {
  static const std::unique_ptr<Expression> program = MakeExpression(60, 1);
  static Variables variables;
  double sum = 0;
  for (int i = 0; i < 240; ++i) sum += program->Evaluate(variables);
  benchmark::DoNotOptimize(sum);
}

#if PERFKIT_BENCH_SQLITE
void Execute(sqlite3* database, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) std::abort();
}

void Query() {
  static sqlite3* const database = [] {
    sqlite3* opened = nullptr;
    if (sqlite3_open(":memory:", &opened) != SQLITE_OK) std::abort();
    Execute(opened,
            "create table book (id integer primary key, title text, author integer);"
            "insert into book select i, 'title ' || (i * 7919 % 10007), i * 31 % 1009 from "
            "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) select i from n);"
            "create index by_author on book (author);");
    return opened;
  }();
  Execute(database,
          "select count(*), sum(length(title)), max(title) from book where id % 5 = 1 and title like '%7%';"
          "select author, count(*), sum(id) from book where author between 100 and 140 group by author order by 2;");
}
#endif

constexpr LiveWork kWorks[] = {
    {"regex", MatchWords},
    {"interpreter", Interpret},
#if PERFKIT_BENCH_SQLITE
    {"sqlite", Query},
#endif
};

}  // namespace

std::span<const LiveWork> LiveWorks() { return kWorks; }

}  // namespace bench

// A small catalogue of books, and what a shop would ask of it.
#include "workload/queries.h"

#include <sqlite3.h>

#include <memory>

namespace workload {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

constexpr const char* kCreate = R"(
  CREATE TABLE book (id INTEGER PRIMARY KEY, author INTEGER, title TEXT, price REAL);
  CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
    INSERT INTO author SELECT i, 'author ' || (i * 7919 % 1000) FROM n;
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
    INSERT INTO book SELECT i, i * 31 % 200 + 1, 'title ' || (i * 104729 % 10007), i % 97 + 0.5 FROM n;
)";

constexpr const char* kQueries[] = {
    "SELECT title FROM book ORDER BY title DESC, price LIMIT 10",
    "SELECT name, count(*), sum(price) FROM book JOIN author ON author.id = book.author GROUP BY name ORDER BY 3",
    "SELECT count(*) FROM book WHERE title LIKE '%99%' AND price > 20",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i * 2 % 1009 + 1 FROM n LIMIT 2000) SELECT max(i) FROM n",
};

int CountRow(void* rows, int, char**, char**) {
  ++*static_cast<uint64_t*>(rows);
  return 0;
}

}  // namespace

std::string RunQueries(const std::atomic<bool>& stop, std::atomic<uint64_t>& queries) {
  sqlite3* opened = nullptr;
  if (sqlite3_open(":memory:", &opened) != SQLITE_OK) return "SQLite opens no database";
  const std::unique_ptr<sqlite3, CloseDatabase> database(opened);
  if (sqlite3_exec(opened, kCreate, nullptr, nullptr, nullptr) != SQLITE_OK) return sqlite3_errmsg(opened);
  while (!stop) {
    for (const char* query : kQueries) {
      uint64_t rows = 0;
      if (sqlite3_exec(opened, query, CountRow, &rows, nullptr) != SQLITE_OK) return sqlite3_errmsg(opened);
      queries.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return "";
}

}  // namespace workload

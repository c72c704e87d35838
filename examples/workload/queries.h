// What is sampled: SQLite, as Debian builds it, without frame pointers, running queries in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace workload {

// Fills a table, then sorts, joins and searches it again and again until `stop`. Adds to `queries`. Returns what went
// wrong, "" when nothing did.
std::string RunQueries(const std::atomic<bool>& stop, std::atomic<uint64_t>& queries);

}  // namespace workload

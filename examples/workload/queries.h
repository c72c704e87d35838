// What is sampled: SQLite, as Debian builds it, without frame pointers, running queries in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace workload {

// Fills a table, then sorts, joins and searches it until `stop`. Counts in `queries`. Returns an error, or "".
std::string RunQueries(const std::atomic<bool>& stop, std::atomic<uint64_t>& queries);

}  // namespace workload

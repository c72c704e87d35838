// Names of cache events: a cache, an operation and a result, each with perf's aliases.
//
// perf composes these names too, so that "L1-dcache-load-misses", "l1d-read-miss" and "L1-data-misses-load" are one
// event. Words: evsel__hw_cache, evsel__hw_cache_op and evsel__hw_cache_result of tools/perf/util/evsel.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::event {

constexpr size_t kCacheCount = 7;
constexpr size_t kCacheOpCount = 3;
constexpr size_t kCacheResultCount = 2;
constexpr size_t kCacheEventCount = kCacheCount * kCacheOpCount * kCacheResultCount;

// config of PERF_TYPE_HW_CACHE (include/uapi/linux/perf_event.h).
constexpr uint64_t CacheConfig(uint64_t cache, uint64_t op, uint64_t result) { return cache | op << 8 | result << 16; }

// Returns the config of a cache event's name, or nullopt if it is no such name. Operation and result may be in either
// order or be left out (loads, accesses). Letter case matters, as in perf.
std::optional<uint64_t> ParseCacheName(std::string_view name);

// Returns the canonical name, as perf prints it: "L1-dcache-loads", "L1-dcache-load-misses". Valid forever.
std::string_view CacheEventName(size_t cache, size_t op, size_t result);

}  // namespace perfkit::event

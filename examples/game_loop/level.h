// What makes a real game hitch: a piece of the level that is loaded into fresh memory, and a lock that another thread
// holds while it loads.
#pragma once

#include <chrono>
#include <cstddef>

namespace game {

// Unpacks `bytes` of a level into memory that this process never touched: one page fault for every page. Returns a
// checksum of what it wrote.
size_t LoadLevelChunk(size_t bytes);

// Waits for an asset: the thread "loader" holds the lock of all assets while it loads one, which takes `time`.
void WaitForAsset(std::chrono::nanoseconds time);

}  // namespace game

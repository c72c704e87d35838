// What makes a real game hitch: a piece of the level that is loaded into fresh memory, and an asset that the main
// thread has to wait for.
#pragma once

#include <chrono>
#include <cstddef>

namespace game {

// Unpacks `bytes` of a level into memory that this process never touched: one page fault for every page. Returns a
// checksum of what it wrote.
size_t LoadLevelChunk(size_t bytes);

// Waits until a loader thread has an asset ready, which takes `time` on another thread.
void WaitForAsset(std::chrono::nanoseconds time);

}  // namespace game

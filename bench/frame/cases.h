// Cases that are known when the program runs only.
#pragma once

namespace bench {

// Game/1khz and Game/200hz. `is_full`: as many frames as a result needs, not just enough to see that they run.
void RegisterGameCases(bool is_full);

}  // namespace bench

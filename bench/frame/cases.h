// Cases that are known when the program runs only.
#pragma once

namespace bench {

// Game/1khz and Game/200hz.
void RegisterGameCases();

}  // namespace bench

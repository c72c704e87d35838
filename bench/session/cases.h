// Cases that are known when the program runs only.
#pragma once

namespace bench {

// Write/<name> for each of perfkit::ProfileFormats().
void RegisterWriteCases();

}  // namespace bench

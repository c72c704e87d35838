// Cases that are known when the program runs only.
#pragma once

namespace bench {

// Session/<work>/<rate> for each of LiveWorks(), and for one that is 1,000 calls deep.
void RegisterSessionCases();

// Write/<name> for each of perfkit::ProfileFormats().
void RegisterWriteCases();

}  // namespace bench

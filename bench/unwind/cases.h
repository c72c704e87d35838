// The cases, one for each workload and contender.
#pragma once

namespace bench {

void RegisterUnwindCases();
void RegisterStitchCases();
void RegisterFrozenCases();

}  // namespace bench

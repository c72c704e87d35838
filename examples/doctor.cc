// What can be counted here, and what stands in the way of the rest.
#include <cstdio>

#include "perfkit/capabilities.h"

int main() { fputs(perfkit::FormatCapabilities(perfkit::ProbeCapabilities()).c_str(), stdout); }

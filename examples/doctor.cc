// Prints what can be counted here, and why the rest cannot.
#include <cstdio>

#include "perfkit/capabilities.h"

int main() { fputs(perfkit::FormatCapabilities(perfkit::ProbeCapabilities()).c_str(), stdout); }

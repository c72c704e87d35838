// Prints what can be counted here, and why the rest cannot.
#include "perfkit/capabilities.h"
#include "tool/arguments.h"
#include "tool/output.h"

int main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  tool::CheckArguments({"doctor", "usage: doctor\n  prints what can be counted here, and why the rest cannot\n", 0},
                       argc, argv);
  return tool::PrintText("doctor", perfkit::FormatCapabilities(perfkit::ProbeCapabilities())) ? 0 : 1;
}

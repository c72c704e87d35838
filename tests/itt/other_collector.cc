// Collectors that are not the one of this perfkit: another one, and with PERFKIT_FUTURE that of a later perfkit.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) void __itt_api_init(void*, int) {}

#ifdef PERFKIT_FUTURE
extern "C" __attribute__((visibility("default"))) uint32_t perfkit_itt_forward(const void*) { return 7; }
#endif

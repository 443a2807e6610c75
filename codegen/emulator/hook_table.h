// The functions that modules call during a launch.
#pragma once
#include "codegen/emulator/launch.h"

namespace cinch::emulator {

/// The launch that runs in this process, or null.
extern Launch* g_launch;

/// A table whose functions act on g_launch; without checks, accesses are not reported to it.
Hooks make_hooks(bool checks);

}  // namespace cinch::emulator

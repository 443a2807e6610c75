// A section of elements behind another one computes anew what that one had, since the results of
// both are not the same lanes at the same time. On a CPU a tile of values fits the nearest caches:
// what takes long is kept there.
//
//   before:  elements:                    after:  elements:
//              %3 = load_at …                       %3 = load_at …
//              %4 = scalar.mul %3, %3               %4 = scalar.mul %3, %3
//              %5 = reduce %4                       local_store %4
//            group: …                               %5 = reduce %4
//            elements:                            group: …
//              %7 = load_at …                     elements:
//              %8 = scalar.mul %7, %7               %8 = local_load
//              store_linear %8                      store_linear %8
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Of kernels over tiles. Values, stores and their order stay; a kernel may read less.
void keep_in_tiles(kir::Kernel& kernel);

}  // namespace cinch::codegen

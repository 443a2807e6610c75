// Structure of a kernel program: how many kernels an entry launches, and which have an order.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::kir {

struct EntryStructure {
  int sweeps = 0;                      // launches of Sweep kernels, each place in the steps once
  int finishes = 0;                    // launches of Finish kernels
  int zeros = 0;                       // zero fills
  int copies = 0;                      // buffer copies
  int loops = 0;                       // While and For steps
  int branches = 0;                    // If steps
  int collectives = 0;                 // exchanges with the other ranks
  std::vector<std::uint32_t> kernels;  // launched kernels in order of their first launch
};

/// An absent entry gives zeros.
EntryStructure entry_structure(const KernelProgram& program, rt::EntryKind entry);
/// "encode: 1 sweep, 1 finish, 1 zero": for tests and explain. Empty for an absent entry.
std::string describe_structure(const KernelProgram& program, rt::EntryKind entry);
/// Visits the step and all steps inside it.
void for_each_step(const rt::Step& step, const std::function<void(const rt::Step&)>& visit);
/// Does the step, or a step inside it, read or write the buffer?
bool touches(const KernelProgram& program, const rt::Step& step, rt::BufferIndex buffer);
/// Does the kernel load, compute and store scalars only? One thread does all of it.
bool is_of_scalars(const Kernel& kernel);
/// Do additions into the buffer give the same bits in any order, and does every target have an
/// atomic addition for them? True for integers that fill 32 or 64 bits.
bool adds_in_any_order(DType dtype);
bool adds_in_any_order(const rt::BufferInfo& buffer);

/// "init", "encode", "decode", "decode_add", "finish", "sync".
const char* entry_name(rt::EntryKind entry);

}  // namespace cinch::kir

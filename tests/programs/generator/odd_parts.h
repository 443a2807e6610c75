// Parts of odd productions: mixtures, indices, numbers that are known late, values that are known
// at once.
#pragma once
#include <string>

#include "tests/programs/generator/program_builder.h"

namespace cinch::testing {

/// An expression of the type of x from x and y.
std::string mixed(ProgramBuilder& b, Elem elem, const std::string& x, const std::string& y);

/// A reduction of reductions: a number that is known many kernels later than `x`.
std::string late_number(ProgramBuilder& b, const std::string& x);

/// A value that is known at once, whatever else the program waits for.
std::string early_vector(ProgramBuilder& b, Elem elem);

/// Unique indices, as many as `dims` says.
struct Index {
  std::string name, dims;
};
Index unique_index(ProgramBuilder& b);

/// Values that may be stored at an index: as many as indices, or one.
std::string values_for(ProgramBuilder& b, const Index& index, Elem elem);

}  // namespace cinch::testing

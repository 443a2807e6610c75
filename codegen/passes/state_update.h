// Where the new values of states are written.
#pragma once
#include <cstdint>

namespace cinch::codegen {

enum class StateUpdate : std::uint8_t {
  SecondBuffer,  // beside the present ones; the runtime swaps them when the call has succeeded
  InPlace,       // over the present ones, wherever that is safe
};

}  // namespace cinch::codegen

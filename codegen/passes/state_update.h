// Where the new values of states are written.
#pragma once
#include <cstdint>

namespace cinch::codegen {

enum class StateUpdate : std::uint8_t {
  SecondBuffer,  // to a second buffer; the runtime swaps the two when the call has succeeded
  InPlace,       // over the present values, wherever that is safe
};

}  // namespace cinch::codegen

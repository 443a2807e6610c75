// A transport over functions that a host program lends.
#pragma once
#include <memory>

#include "runtime/c_api/cinch_transport.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

/// What the calls' context points to outlives the transport. Errors of the host are
/// ErrorKind::Device with its number and text. Errors: InvalidArgument (a table of another size,
/// without start or test, a rank that is not below the world).
Result<std::unique_ptr<Transport>> make_callback_transport(const cinch_transport_calls& calls);

}  // namespace cinch::rt

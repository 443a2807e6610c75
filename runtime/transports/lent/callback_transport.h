// A transport over callbacks of a host program.
#pragma once
#include <memory>

#include "runtime/c_api/cinch_transport.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

/// Makes the transport. What the calls' context points to must outlive it. The host's errors become
/// ErrorKind::Device with their number and text. Errors: InvalidArgument (a table of another size,
/// without start or test, a rank that is not below the world).
Result<std::unique_ptr<Transport>> make_callback_transport(const cinch_transport_calls& calls);

}  // namespace cinch::rt

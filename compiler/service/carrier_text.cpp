#include "compiler/service/carrier_text.h"

#include <nlohmann/json.hpp>

namespace cinch::service {

std::string carrier_text(const rt::ProgramInfo& info) {
  const rt::SumCarrier& carrier = info.carrier;
  switch (carrier.kind) {
    case rt::CarrierKind::Itself: {
      const bool has_residual = !info.states.empty() && !info.has_sync;
      return has_residual ? "itself, with a residual of the owner's own" : "itself";
    }
    case rt::CarrierKind::Exact:
      return "f32 (exact)";
    case rt::CarrierKind::Program:
      return carrier.text + (carrier.shares_draws ? " with the draws of the ranks" : "");
    case rt::CarrierKind::None:
      break;
  }
  return "nothing: " + carrier.text +
         "; takes allgather, allreduce if its wire adds up, reduce_scatter";
}

nlohmann::json carrier_json(const rt::SumCarrier& carrier) {
  constexpr const char* kKinds[] = {"itself", "exact", "program", "none"};
  return {{"kind", kKinds[static_cast<std::size_t>(carrier.kind)]},
          {"text", carrier.text},
          {"shares_draws", carrier.shares_draws}};
}

}  // namespace cinch::service

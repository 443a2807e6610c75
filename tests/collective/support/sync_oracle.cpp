// Bodies of sync_oracle.h.
#include "tests/collective/support/sync_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/call/joins.h"
#include "runtime/call/parameters.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/collective/rank_meeting.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::testing {

using rt::Site;

const std::string& SyncOracle::plan_of(std::uint32_t piece) const {
  const rt::PlanTensor& tensor = plan_.tensors[plan_.pieces[piece].tensor];
  return tensor.plan.empty() ? plan_.name : tensor.plan;
}

bool SyncOracle::is_dense(std::uint32_t piece) const {
  return plan_.tensors[plan_.pieces[piece].tensor].codec == rt::kDense;
}

const rt::ProgramInfo& SyncOracle::info_of(std::uint32_t piece) const {
  return programs_[plan_.tensors[plan_.pieces[piece].tensor].codec]->info();
}

rt::CarrierKind SyncOracle::carrier_of(std::uint32_t piece) const {
  return is_dense(piece) ? rt::CarrierKind::Itself : info_of(piece).carrier.kind;
}

SyncOracle::Coder SyncOracle::coder_of_sums(std::uint32_t piece) const {
  return carrier_of(piece) == rt::CarrierKind::Itself ? Coder::Own : Coder::OfSums;
}

float SyncOracle::share(std::uint32_t piece) const {
  const bool adds =
      plan_of(piece) == "allreduce" || plan_of(piece) == "ring" || plan_of(piece) == "tree";
  if (!adds || is_dense(piece) || carrier_of(piece) != rt::CarrierKind::Itself) return 1;
  if (plan_of(piece) == "allreduce" && !has_summed_payloads(piece)) return 1;
  const auto is_narrow = [](const rt::FieldInfo& field) {
    return field.type.dtype == kF16 || (is_float(field.type.dtype) && field.type.dtype.bits == 8);
  };
  if (std::ranges::none_of(info_of(piece).wire.fields, is_narrow)) return 1;
  if (!info_of(piece).takes_partial_sums() || !info_of(piece).is_linear) return 1;
  float share = 1;
  while (share * static_cast<float>(plan_.world()) > 1) share /= 2;
  return share;
}

SyncOracle::Values SyncOracle::shared_gradient(std::uint32_t piece, std::uint32_t rank) const {
  Values values = gradient(piece, rank);
  for (float& value : values) value *= share(piece);
  return values;
}

SyncOracle::Values SyncOracle::own_part(std::uint32_t piece, std::uint32_t rank) {
  if (carrier_of(piece) == rt::CarrierKind::Itself) return shared_gradient(piece, rank);
  Values part(static_cast<std::size_t>(plan_.pieces[piece].num_elems), 0.0f);
  decode_add(piece, Site::Worker, encode(piece, rank, Site::Worker, gradient(piece, rank)), part);
  return part;
}

rt::Session& SyncOracle::session(std::uint32_t piece, std::uint32_t rank, Site site, Coder coder) {
  auto& found = sessions_[{piece, rank, site, coder}];
  if (found == nullptr) {
    const rt::Piece& of = plan_.pieces[piece];
    const rt::PlanTensor& tensor = plan_.tensors[of.tensor];
    std::shared_ptr<const rt::LoadedProgram> program = programs_[tensor.codec];
    const bool shares_draws = program->info().carrier.shares_draws;
    if (coder == Coder::OfSums) {
      const auto carries = [&](const auto& other) {
        return other->info().name == program->info().name + ".again";
      };
      program = *std::ranges::find_if(programs_, carries);
    }
    rt::SessionOptions options;
    options.rows = program->info().is_matrix ? tensor.rows : of.num_elems;
    options.cols = program->info().is_matrix ? tensor.cols : 1;
    options.threads = 1;
    options.world = plan_.world();
    options.worker = rank;
    options.machine_ranks = on_each_ > 1 ? on_each_ : 0;
    // As docs/sync_reference.md says: the site's number times this.
    options.seed = seed_ ^ (0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(site));
    if (shares_draws) options.seed = seed_;
    options.tensor = of.tensor;
    options.piece = of.number;
    auto opened = rt::Session::open(program, options);
    EXPECT_TRUE(opened) << opened.error().message;
    found = std::make_unique<rt::Session>(std::move(*opened));
  }
  return *found;
}

SyncOracle::Values SyncOracle::gradient(std::uint32_t piece, std::uint32_t rank) const {
  const rt::Piece& of = plan_.pieces[piece];
  const auto& tensor = (*gradients_)[rank][of.tensor];
  return {tensor.begin() + of.first, tensor.begin() + of.first + of.num_elems};
}

SyncOracle::Bytes SyncOracle::encode(std::uint32_t piece, std::uint32_t rank, Site site,
                                     const Values& values, Coder coder) {
  if (is_dense(piece) || (coder == Coder::OfSums && carrier_of(piece) == rt::CarrierKind::Exact)) {
    Bytes bytes(4 * values.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  const auto payload = session(piece, rank, site, coder).encode(values, step_);
  EXPECT_TRUE(payload) << payload.error().message;
  return {payload->begin(), payload->end()};
}

void SyncOracle::decode_add(std::uint32_t piece, Site site, const Bytes& payload, Values& sum,
                            Coder coder) {
  if (is_dense(piece) || (coder == Coder::OfSums && carrier_of(piece) == rt::CarrierKind::Exact)) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      float value;
      std::memcpy(&value, payload.data() + 4 * i, 4);
      sum[i] += value;
    }
    return;
  }
  const rt::Status status = session(piece, 0, site, coder).decode_add(payload, sum, step_);
  EXPECT_TRUE(status) << status.error().message;
}

SyncOracle::Values SyncOracle::finish(std::uint32_t piece, std::uint32_t rank, Values sum) {
  if (is_dense(piece)) {
    for (float& x : sum) x /= static_cast<float>(plan_.world());
    return sum;
  }
  Values update(sum.size());
  const rt::Status status = session(piece, rank, Site::Worker).finish(sum, update, step_);
  EXPECT_TRUE(status) << status.error().message;
  return update;
}

// The sum of what all ranks send, added in rank order.
SyncOracle::Values SyncOracle::gathered(std::uint32_t piece) {
  Values sum(static_cast<std::size_t>(plan_.pieces[piece].num_elems), 0.0f);
  // A transport that adds begins with the first rank's values.
  const bool is_added_on_the_way = plan_of(piece) == "allreduce" && is_dense(piece);
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    if (is_added_on_the_way && rank == 0) {
      sum = gradient(piece, 0);
      continue;
    }
    decode_add(piece, Site::Worker, encode(piece, rank, Site::Worker, gradient(piece, rank)), sum);
  }
  return sum;
}

bool SyncOracle::has_summed_payloads(std::uint32_t piece) const {
  if (plan_of(piece) != "allreduce" || is_dense(piece)) return false;
  return rt::has_summable_wire(programs_[plan_.tensors[plan_.pieces[piece].tensor].codec]->info());
}

// Payloads joined field by field, decoded once.
SyncOracle::Values SyncOracle::summed(std::uint32_t piece) {
  std::vector<Bytes> payloads;
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    payloads.push_back(encode(piece, rank, Site::Worker, shared_gradient(piece, rank)));
  }
  rt::Session& first = session(piece, 0, Site::Worker);
  const auto header = rt::read_payload_header(payloads[0]);
  const rt::ParameterValues parameters(first.info());
  const rt::PayloadExpectation expected{
      &first.info(), rt::fingerprint(first.info()), header->decode_hash,
      rt::host_env(rt::facts_for(first.info(), first.options().facts()), parameters, step_)};
  const std::vector<std::span<const std::uint8_t>> views(payloads.begin(), payloads.end());
  const auto joined = rt::sum_payloads(expected, views);
  EXPECT_TRUE(joined) << joined.error().message;
  Values sum(static_cast<std::size_t>(plan_.pieces[piece].num_elems));
  const rt::Status status = first.decode(*joined, sum, step_);
  EXPECT_TRUE(status) << status.error().message;
  for (float& value : sum) value *= 1 / share(piece);
  return sum;
}

SyncOracle::Values SyncOracle::along_the_ring(std::uint32_t piece, std::uint32_t owner) {
  const std::uint32_t world = plan_.world();
  Values sum(static_cast<std::size_t>(plan_.pieces[piece].num_elems), 0.0f);
  Site site = Site::Worker;
  Coder coder = Coder::Own;
  Bytes payload;
  for (std::uint32_t i = 1; i <= world; ++i) {
    const std::uint32_t rank = (owner + i) % world;
    if (i == 1 && world > 1) {
      payload = encode(piece, rank, Site::Worker, shared_gradient(piece, rank));
      continue;
    }
    sum = own_part(piece, rank);
    if (i > 1) decode_add(piece, site, payload, sum, coder);
    site = Site::Hop;
    coder = coder_of_sums(piece);
    if (i < world) payload = encode(piece, rank, site, sum, coder);
  }
  for (float& value : sum) value *= 1 / share(piece);
  return sum;
}

// A rank's children are the ranks that have one of its low zero bits set.
SyncOracle::Values SyncOracle::partial_of_tree(std::uint32_t piece, std::uint32_t rank) {
  Values sum = own_part(piece, rank);
  const auto has_children = [&](std::uint32_t of) { return of % 2 == 0 && of + 1 < plan_.world(); };
  for (std::uint32_t bit = 1; rank % (2 * bit) == 0 && rank + bit < plan_.world(); bit *= 2) {
    const std::uint32_t child = rank + bit;
    const Site site = has_children(child) ? Site::Hop : Site::Worker;
    const Coder coder = has_children(child) ? coder_of_sums(piece) : Coder::Own;
    const Values from =
        has_children(child) ? partial_of_tree(piece, child) : shared_gradient(piece, child);
    decode_add(piece, site, encode(piece, child, site, from, coder), sum, coder);
  }
  return sum;
}

// Sums of machines, in rank order; then sums over machines, by the ranks with the owner's number.
SyncOracle::Values SyncOracle::between_machines(std::uint32_t piece, std::uint32_t owner) {
  Values sum(static_cast<std::size_t>(plan_.pieces[piece].num_elems), 0.0f);
  for (std::uint32_t first = 0; first < plan_.world(); first += on_each_) {
    Values of_machine(sum.size(), 0.0f);
    for (std::uint32_t rank = first; rank < first + on_each_; ++rank) {
      const Values own = gradient(piece, rank);
      for (std::size_t k = 0; k < sum.size(); ++k) of_machine[k] += own[k];
    }
    const Site site = on_each_ == 1 ? Site::Worker : Site::Hop;
    if (on_each_ == 1) of_machine = gradient(piece, first);
    const std::uint32_t encoder = first + owner % on_each_;
    decode_add(piece, site, encode(piece, encoder, site, of_machine), sum);
  }
  return sum;
}

SyncOracle::Values SyncOracle::again(std::uint32_t piece, std::uint32_t owner,
                                     const Values& result) {
  if (is_dense(piece) || carrier_of(piece) == rt::CarrierKind::Exact) return result;
  const Coder coder = coder_of_sums(piece);
  const Bytes payload = encode(piece, owner, Site::Owner, result, coder);
  Values update(result.size());
  const rt::Status status =
      session(piece, owner, Site::Owner, coder).decode(payload, update, step_);
  EXPECT_TRUE(status) << status.error().message;
  return update;
}

SyncOracle::Values SyncOracle::synchronised(std::uint32_t piece) {
  std::vector<Values> updates(plan_.world());
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) session(piece, rank, Site::Worker);
  rt::run_rank_threads(plan_.world(), nullptr, [&](std::uint32_t rank, rt::RankExchange& ranks) {
    const Values own = gradient(piece, rank);
    updates[rank].resize(own.size());
    const rt::Status status = sessions_.at({piece, rank, Site::Worker, Coder::Own})
                                  ->sync(own, updates[rank], step_, ranks);
    EXPECT_TRUE(status) << status.error().message;
  });
  return updates[0];
}

SyncOracle::Values SyncOracle::piece_update(std::uint32_t piece, std::uint32_t owner) {
  if (!is_dense(piece) &&
      programs_[plan_.tensors[plan_.pieces[piece].tensor].codec]->info().has_sync) {
    return synchronised(piece);
  }
  if (plan_of(piece) == "allgather" || plan_of(piece) == "allreduce") {
    // Every rank finishes by itself; the first represents all.
    const Values sum = has_summed_payloads(piece) ? summed(piece) : gathered(piece);
    Values update = finish(piece, 0, sum);
    for (std::uint32_t rank = 1; rank < plan_.world(); ++rank) finish(piece, rank, sum);
    return update;
  }
  if (plan_of(piece) == "reduce_scatter") return finish(piece, owner, gathered(piece));
  if (plan_of(piece) == "tree") owner = 0;
  Values sum = plan_of(piece) == "ring"           ? along_the_ring(piece, owner)
               : plan_of(piece) == "hierarchical" ? between_machines(piece, owner)
               : plan_of(piece) == "tree"         ? partial_of_tree(piece, 0)
                                                  : gathered(piece);
  if (plan_of(piece) == "tree") {
    for (float& value : sum) value *= 1 / share(piece);
  }
  return again(piece, owner, finish(piece, owner, sum));
}

Tensors SyncOracle::step(const std::vector<Tensors>& gradients, std::uint64_t step) {
  gradients_ = &gradients;
  step_ = step;
  Tensors updates;
  for (const rt::PlanTensor& tensor : plan_.tensors) {
    updates.emplace_back(static_cast<std::size_t>(tensor.num_elems()));
  }
  std::uint32_t num_owned = 0, bundle = 0;
  for (const rt::Group& group : plan_.groups) {
    // Bundles have a group for each owner, one after the other; the tests' server is rank 0.
    if (group.carries != rt::kNoGroup) continue;
    const bool is_next = num_owned > 0 && group.bundle == bundle;
    num_owned = is_next ? num_owned + 1 : 1;
    bundle = group.bundle;
    for (const std::uint32_t piece : group.pieces) {
      const std::uint32_t owner = plan_of(piece) == "ps" ? 0 : num_owned - 1;
      const Values update = piece_update(piece, owner);
      const rt::Piece& of = plan_.pieces[piece];
      std::ranges::copy(update, updates[of.tensor].begin() + of.first);
    }
  }
  return updates;
}

}  // namespace cinch::testing

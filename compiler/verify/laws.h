// The laws, in groups of one file each. Laws that every program must keep take a trial; laws that
// test a claim also take the claim.
#pragma once
#include "compiler/verify/trial.h"

namespace cinch::verify {

// law_round_trip.cpp
Finding round_trip(const Trial& trial);
Finding size_bound(const Trial& trial);
// law_same_bits.cpp
Finding threads(const Trial& trial);
Finding vector_widths(const Trial& trial);
Finding devices(const Trial& trial);
Finding ranks(const Trial& trial);
// law_non_finite.cpp
Finding non_finite(const Trial& trial);
// law_protocol.cpp: for programs with a `sync` body, instead of `ranks` and `non_finite`.
Finding protocol_ranks(const Trial& trial);
Finding protocol_non_finite(const Trial& trial);
// law_hostile.cpp
Finding hostile_payloads(const Trial& trial);
// law_mean.cpp
Finding unbiased(const Trial& trial, const sema::Claim& claim);
// law_error.cpp
Finding variance(const Trial& trial, const sema::Claim& claim);
Finding contraction(const Trial& trial, const sema::Claim& claim);
Finding absolute_error(const Trial& trial, const sema::Claim& claim);
// law_conserves.cpp
Finding conserves(const Trial& trial, const sema::Claim& claim);
// law_equivariance.cpp
Finding scale_equivariant(const Trial& trial, const sema::Claim& claim);
Finding sign_equivariant(const Trial& trial, const sema::Claim& claim);
Finding idempotent(const Trial& trial, const sema::Claim& claim);
// law_linear.cpp: for programs whose payloads are summed field by field, claimed or not.
Finding linear(const Trial& trial);
// law_sums_fit.cpp: for the same programs.
Finding sums_fit(const Trial& trial);
// law_sums.cpp: for programs whose sums are encoded again, by themselves or by another program,
// which claims how near it comes.
Finding sums(const Trial& trial, const sema::Claim& claim);
/// The strongest such claim; null: none.
const sema::Claim* claim_about_sums(const Subject& subject);
// law_density.cpp
Finding density(const Trial& trial, const sema::Claim& claim);

}  // namespace cinch::verify

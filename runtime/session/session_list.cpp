// A call over many tensors runs one task for each tensor; the task runs the tensor's kernels on the
// same runner. Large tensors begin first, so that only small ones are left at the end.
#include "runtime/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace cinch::rt {
namespace {

// What a call changes besides its outputs.
enum class Effect { None, States };

tl::unexpected<ListError> at(std::size_t place, Error error) {
  return tl::unexpected<ListError>(ListError{std::move(error), place});
}

tl::unexpected<ListError> refuse(std::size_t place, ErrorKind kind, std::string message) {
  return at(place, Error{kind, std::move(message)});
}

// The outcomes of one call's tensors, reported by many threads.
class Outcomes {
 public:
  // 0: not run, or failed.
  explicit Outcomes(std::vector<std::uint8_t>& succeeded) : succeeded_(succeeded) {}

  /// Every entry before the first that fails is run, so that the same error is found in every run.
  bool is_wanted(std::size_t place) const {
    return place < first_failed_.load(std::memory_order_relaxed);
  }

  void note(std::size_t place, Status status) {
    if (status) {
      succeeded_[place] = 1;
      return;
    }
    // Cancelled entries are recognised by not having run.
    if (status.error().kind == ErrorKind::Cancelled) return;
    const std::lock_guard lock(mutex_);
    if (!is_wanted(place)) return;
    first_failed_ = place;
    error_ = std::move(status.error());
  }

  ListStatus status() {
    const auto missing = std::ranges::find(succeeded_, 0);
    if (missing == succeeded_.end()) return Ok{};
    if (first_failed_ != kNoPlace) return at(first_failed_, std::move(error_));
    return refuse(static_cast<std::size_t>(missing - succeeded_.begin()), ErrorKind::Cancelled,
                  "cancelled");
  }

 private:
  std::vector<std::uint8_t>& succeeded_;
  std::atomic<std::size_t> first_failed_{kNoPlace};
  std::mutex mutex_;
  Error error_;
};

Status give(std::span<const std::uint8_t> bytes, PayloadSlot& to) {
  to.bytes = bytes;
  if (to.room.empty()) return Ok{};
  if (to.room.size() < bytes.size()) {
    return fail(ErrorKind::InvalidArgument, fmt::format("the payload takes {} bytes, there are {}",
                                                        bytes.size(), to.room.size()));
  }
  std::memcpy(to.room.data(), bytes.data(), bytes.size());
  to.bytes = to.room.first(bytes.size());
  return Ok{};
}

}  // namespace

struct SessionList::Impl {
  Impl(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& common)
      : program(std::move(loaded)), runner(common.threads), cancelled(common.cancelled) {}

  ListStatus open(SessionOptions options, std::span<const ListTensor> tensors) {
    options.runner = &runner;
    sessions.reserve(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      options.rows = tensors[i].rows;
      options.cols = tensors[i].cols;
      options.tensor = tensors[i].tensor;
      options.piece = tensors[i].piece;
      auto session = Session::open(program, options);
      if (!session) return at(i, std::move(session.error()));
      sessions.push_back(std::move(*session));
    }
    order_of.resize(tensors.size());
    chosen.resize(tensors.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    std::ranges::sort(chosen, {}, [&](std::size_t tensor) {
      return std::pair(-sessions[tensor].num_elems(), tensor);
    });
    for (std::size_t i = 0; i < chosen.size(); ++i) order_of[chosen[i]] = i;
    place_of.assign(tensors.size(), kNoPlace);
    succeeded.reserve(tensors.size());
    return Ok{};
  }

  /// Runs run(session, place) for the call's tensors, whose arrays have this many entries. If the
  /// memory comes from a source, this thread calls reserve(session, place) for all of them before.
  template <typename Reserve, typename Run>
  ListStatus run(const ListCall& call, std::array<std::size_t, 2> num_entries, Effect effect,
                 const Reserve& reserve, const Run& run) {
    return guarded_list(in_use, [&]() -> ListStatus {
      if (ListStatus status = choose(call, num_entries); !status || chosen.empty()) return status;
      CINCH_TRY(reserve_all(reserve));
      return run_all(effect, run);
    });
  }

  ListStatus choose(const ListCall& call, std::array<std::size_t, 2> num_entries) {
    const bool is_told = !call.which.empty();
    if (num_entries[0] != num_entries[1] || (is_told && call.which.size() != num_entries[0])) {
      return refuse(kNoPlace, ErrorKind::InvalidArgument, "arrays of a call differ in length");
    }
    for (const std::size_t tensor : chosen) place_of[tensor] = kNoPlace;
    chosen.clear();
    for (std::size_t i = 0; i < num_entries[0]; ++i) {
      const std::size_t tensor = is_told ? call.which[i] : i;
      if (tensor >= sessions.size()) {
        return refuse(i, ErrorKind::OutOfRange,
                      fmt::format("tensor {} of {}", tensor, sessions.size()));
      }
      if (place_of[tensor] != kNoPlace) {
        return refuse(i, ErrorKind::InvalidArgument,
                      fmt::format("tensor {} stands twice in one call", tensor));
      }
      place_of[tensor] = i;
      chosen.push_back(tensor);
    }
    std::ranges::sort(chosen, {}, [&](std::size_t tensor) { return order_of[tensor]; });
    succeeded.assign(num_entries[0], 0);
    return Ok{};
  }

  template <typename Reserve>
  ListStatus reserve_all(const Reserve& reserve) {
    for (const std::size_t tensor : chosen) {
      if (sessions[tensor].options().memory.allocate == nullptr) continue;
      Status status = reserve(sessions[tensor], place_of[tensor]);
      if (!status) return at(place_of[tensor], std::move(status.error()));
    }
    return Ok{};
  }

  template <typename Run>
  ListStatus run_all(Effect effect, const Run& run) {
    Outcomes outcomes(succeeded);
    Status ended = guarded([&] {
      return runner.run(chosen.size(), cancelled, [&](std::uint64_t i) {
        const std::size_t tensor = chosen[i], place = place_of[tensor];
        if (!outcomes.is_wanted(place)) return;
        outcomes.note(place, guarded([&] { return run(sessions[tensor], place); }));
      });
    });
    ListStatus status = outcomes.status();
    if (status) return status;
    if (!ended && ended.error().kind != ErrorKind::Cancelled) {
      status = at(kNoPlace, std::move(ended.error()));
    }
    for (const std::size_t tensor : chosen) {
      const bool has_changed = effect == Effect::States && succeeded[place_of[tensor]] != 0;
      if (!has_changed) continue;
      Status taken_back = sessions[tensor].take_back();
      if (!taken_back) status = at(place_of[tensor], std::move(taken_back.error()));
    }
    return status;
  }

  /// Calls on_session for all sessions until one fails.
  template <typename OnSession>
  Status for_all(const OnSession& on_session) {
    return guarded_use(in_use, [&]() -> Status {
      for (Session& session : sessions) {
        CINCH_TRY(on_session(session));
      }
      return Ok{};
    });
  }

  UseFlag in_use;
  std::shared_ptr<const LoadedProgram> program;
  TaskRunner runner;
  const std::atomic<bool>* cancelled;
  std::vector<Session> sessions;
  std::vector<std::size_t> order_of;  // by tensor: 0 for the largest
  // Data of the running call. It is kept here, so that calls allocate nothing.
  std::vector<std::size_t> place_of;    // by tensor; kNoPlace: not of the call
  std::vector<std::size_t> chosen;      // tensors of the call, the largest first
  std::vector<std::uint8_t> succeeded;  // by place
};

SessionList::SessionList(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SessionList::~SessionList() = default;
SessionList::SessionList(SessionList&&) noexcept = default;
SessionList& SessionList::operator=(SessionList&&) noexcept = default;
ListResult<SessionList> SessionList::open(const std::shared_ptr<const LoadedProgram>& program,
                                          const SessionOptions& common,
                                          std::span<const ListTensor> tensors) {
  UseFlag in_use;  // no other thread knows the list yet
  return guarded_list(in_use, [&]() -> ListResult<SessionList> {
    if (common.threads > kMaxThreads) {
      return refuse(kNoPlace, ErrorKind::InvalidArgument,
                    fmt::format("{} threads: at most {}", common.threads, kMaxThreads));
    }
    auto impl = std::make_unique<Impl>(program, common);
    CINCH_TRY(impl->open(common, tensors));
    return SessionList(std::move(impl));
  });
}

std::size_t SessionList::size() const {
  return impl_->sessions.size();
}
Session& SessionList::operator[](std::size_t tensor) {
  return impl_->sessions[tensor];
}
const Session& SessionList::operator[](std::size_t tensor) const {
  return impl_->sessions[tensor];
}
std::uint64_t SessionList::num_regions() const {
  return impl_->runner.num_regions();
}

const ProgramInfo& SessionList::info() const {
  return impl_->program->info();
}

// States keep their sizes, so this does not count as using the sessions.
std::size_t SessionList::state_bytes() const {
  std::size_t total = 0;
  for (const Session& session : impl_->sessions) {
    total += static_cast<std::size_t>(session.state_bytes());
  }
  return total;
}

std::size_t SessionList::workspace_bytes() const {
  std::size_t total = 0;
  for (const Session& session : impl_->sessions) {
    total += static_cast<std::size_t>(session.workspace_bytes().value_or(0));
  }
  return total;
}
// All sessions have the same parameters, so the first tells whether the value fits.
Status SessionList::set_parameter(std::string_view name, double value) {
  return impl_->for_all([&](Session& session) { return session.set_parameter(name, value); });
}

Status SessionList::keep_states() {
  return impl_->for_all([](Session& session) { return session.keep_states(); });
}

Status SessionList::take_back_states() {
  return impl_->for_all([](Session& session) { return session.take_back_states(); });
}
ListStatus SessionList::encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                               std::span<PayloadSlot> payloads) {
  const auto reserve = [&](Session& session, std::size_t i) {
    return session.reserve(EntryKind::Encode, gradients[i].dtype, false, call.step);
  };
  const auto run = [&](Session& session, std::size_t i) -> Status {
    const auto bytes = TRY(session.encode(gradients[i], call.step));
    Status given = give(bytes, payloads[i]);
    if (given) return given;
    Status taken_back = session.take_back();
    return taken_back ? given : taken_back;
  };
  return impl_->run(call, {gradients.size(), payloads.size()}, Effect::States, reserve, run);
}

ListStatus SessionList::decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                               std::span<const TensorView> outputs) {
  const auto reserve = [&](Session& session, std::size_t i) {
    return session.reserve(EntryKind::Decode, outputs[i].dtype, false, call.step);
  };
  const auto run = [&](Session& session, std::size_t i) {
    return session.decode(payloads[i], outputs[i], call.step);
  };
  return impl_->run(call, {payloads.size(), outputs.size()}, Effect::None, reserve, run);
}

ListStatus SessionList::decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                                   std::span<const std::span<float>> outputs) {
  const auto reserve = [&](Session& session, std::size_t) {
    return session.reserve(EntryKind::DecodeAdd, kF32, false, call.step);
  };
  const auto run = [&](Session& session, std::size_t i) {
    return session.decode_add(payloads[i], outputs[i], call.step);
  };
  return impl_->run(call, {payloads.size(), outputs.size()}, Effect::None, reserve, run);
}

ListStatus SessionList::finish(const ListCall& call, std::span<const std::span<float>> sums,
                               std::span<const TensorView> updates) {
  const auto reserve = [&](Session& session, std::size_t i) {
    const bool is_in_place = updates[i].data == sums[i].data();
    return session.reserve(EntryKind::Finish, updates[i].dtype, is_in_place, call.step);
  };
  const auto run = [&](Session& session, std::size_t i) {
    return session.finish(sums[i], updates[i], call.step);
  };
  // A program without a finish of its own changes no states there: the changes of its encode stay.
  const bool has_finish = !impl_->sessions.empty() && impl_->sessions[0].info().has_finish;
  return impl_->run(call, {sums.size(), updates.size()}, has_finish ? Effect::States : Effect::None,
                    reserve, run);
}

}  // namespace cinch::rt

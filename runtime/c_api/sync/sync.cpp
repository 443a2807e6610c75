// Synchronising, of the C API.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "runtime/c_api/calls.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/plan_file.h"
#include "runtime/planner/planner.h"

namespace cinch::c_api {
namespace {

CallResult<rt::PlanTensor> plan_tensor(const cinch_sync_tensor* tensors, std::size_t index,
                                       std::size_t num_programs, std::uint32_t world) {
  const auto given =
      TRY(read_struct(entry(tensors, index), offsetof(cinch_sync_tensor, part_ends), "tensor"));
  if (given.name == nullptr) return invalid("a tensor has no name");
  const std::string name = given.name;
  constexpr std::int64_t kTooMany = std::int64_t{1} << 32;
  const std::int64_t rows = given.rows, columns = given.columns;
  const bool is_small =
      rows >= 0 && columns >= 0 && (columns == 0 || rows <= (kTooMany - 1) / columns);
  if (!is_small) {
    return invalid(name + ": a negative size, or 2^32 elements or more");
  }
  const bool is_exact = given.program == CINCH_EXACT;
  if (!is_exact && (given.program < 0 || static_cast<std::size_t>(given.program) >= num_programs)) {
    return invalid(name + ": there is no program " + std::to_string(given.program));
  }
  const std::uint32_t codec = is_exact ? rt::kDense : static_cast<std::uint32_t>(given.program);
  rt::PlanTensor made{name, rows, columns, codec, given.priority};
  if (given.part_ends != nullptr) {
    made.part_ends.assign(given.part_ends, given.part_ends + world);
  }
  return made;
}

// Tensors in the order in which they are sent; `given` gets the index of each in the caller's
// array.
CallResult<std::vector<rt::PlanTensor>> plan_tensors(const cinch_sync_tensor* tensors,
                                                     std::size_t count, std::size_t num_programs,
                                                     std::uint32_t world,
                                                     std::vector<std::size_t>& given) {
  if (count > 0 && tensors == nullptr) return invalid("tensors is null");
  std::vector<rt::PlanTensor> all;
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    auto tensor = plan_tensor(tensors, i, num_programs, world);
    if (!tensor) return fail_at(i, std::move(tensor.error()));
    if (!names.insert(tensor->name).second) {
      return fail_at(i, {CINCH_INVALID_ARGUMENT, "two tensors are named " + tensor->name});
    }
    all.push_back(std::move(*tensor));
  }
  given.resize(count);
  std::iota(given.begin(), given.end(), std::size_t{0});
  std::ranges::stable_sort(
      given, [&](std::size_t a, std::size_t b) { return all[a].priority > all[b].priority; });
  std::vector<rt::PlanTensor> sorted;
  sorted.reserve(count);
  for (const std::size_t i : given) sorted.push_back(all[i]);
  return sorted;
}

// The routes of tensors that have plans or pieces of their own. `sorted`: the order of the
// request's tensors.
CallStatus add_routes(const cinch_sync_tensor* tensors, const std::vector<std::size_t>& sorted,
                      rt::PlanRequest& request) {
  std::vector<std::pair<std::string, std::uint64_t>> known;
  bool has_own = false;
  for (const std::size_t i : sorted) {
    const auto given =
        TRY(read_struct(entry(tensors, i), offsetof(cinch_sync_tensor, part_ends), "tensor"));
    has_own = has_own || given.plan != nullptr || given.piece_bytes > 0;
    const std::pair wanted(given.plan == nullptr ? request.plan : std::string(given.plan),
                           given.piece_bytes > 0 ? given.piece_bytes : request.piece_bytes);
    const auto found = std::ranges::find(known, wanted);
    request.route_of.push_back(static_cast<std::uint32_t>(found - known.begin()));
    if (found != known.end()) continue;
    known.push_back(wanted);
    request.routes.push_back({wanted.first, wanted.second, request.lengths, request.option});
  }
  if (!has_own) {
    request.routes.clear();
    request.route_of.clear();
  } else if (request.plan == "auto" || request.plan == "reduce_scatter") {
    return invalid("tensors have plans of their own, and " + request.plan + " is one for all");
  }
  return rt::Ok{};
}

// Reads the file that the request names as its plan.
CallResult<rt::PlanRequest> follow_plan_file(rt::PlanRequest request) {
  if (!request.routes.empty()) {
    return invalid("tensors have plans of their own, and " + request.plan + " has one for each");
  }
  const std::string path = request.plan;
  const auto text = TRY(rt::read_text_file(path));
  const auto named = [&path](rt::Error error) {
    error.message = path + ": " + error.message;
    return tl::unexpected<rt::Error>(std::move(error));
  };
  auto file = rt::plan_file_from_json(text);
  if (!file) return named(std::move(file.error()));
  auto followed = rt::with_plan_file(std::move(request), *file);
  if (!followed) return named(std::move(followed.error()));
  return std::move(*followed);
}

CallResult<rt::PlanRequest> plan_request(const cinch_sync_options& options, std::uint32_t world,
                                         const RankPrograms& programs) {
  rt::PlanRequest request;
  if (options.plan != nullptr) request.plan = options.plan;
  request.world = world;
  if (options.piece_bytes > 0) request.piece_bytes = options.piece_bytes;
  if (options.lengths < CINCH_LENGTHS_AUTO || options.lengths > CINCH_LENGTHS_EXCHANGED) {
    return invalid("lengths is not a value of its enum");
  }
  request.lengths = static_cast<rt::LengthPolicy>(options.lengths);
  request.ranks_per_machine = std::max(1U, options.ranks_per_machine);
  if (options.servers != nullptr) {
    request.servers.assign(options.servers, options.servers + options.num_servers);
  }
  for (const auto& image : programs.images) {
    request.codecs.push_back(
        rt::codec_facts(image, world, options.first_step, options.ranks_per_machine));
  }
  return request;
}

struct OpenArguments {
  const cinch_program* const* programs;
  std::size_t num_programs;
  const cinch_sync_tensor* tensors;
  std::size_t num_tensors;
  cinch_sync_options options;
};

// Adds what carries the sums of the programs that tensors have, if the plan encodes sums again.
CallStatus add_carriers(const OpenArguments& with, rt::PlanRequest& request,
                        RankPrograms& programs) {
  const auto encodes = [](const rt::PlanRoute& route) { return rt::encodes_sums(route.plan); };
  const bool is_needed = request.plan == "auto" || rt::encodes_sums(request.plan) ||
                         std::ranges::any_of(request.routes, encodes);
  if (!is_needed) return rt::Ok{};
  std::set<std::uint32_t> used;
  for (const rt::PlanTensor& tensor : request.tensors) used.insert(tensor.codec);
  for (std::uint32_t codec = 0; codec < with.num_programs; ++codec) {
    const bool has_carrier = request.codecs[codec].carrier.kind == rt::CarrierKind::Program;
    if (!has_carrier || !used.contains(codec)) continue;
    CINCH_TRY(add_carrier(*with.programs[codec], with.options, programs));
    request.codecs[codec].carrier_codec = static_cast<std::uint32_t>(request.codecs.size());
    request.codecs.push_back(rt::codec_facts(programs.images.back(), request.world,
                                             with.options.first_step,
                                             with.options.ranks_per_machine));
  }
  return rt::Ok{};
}

// Adds code for CPUs to a rank on a GPU, in the order of its programs, if the plan encodes there.
CallStatus add_cpu_code(const OpenArguments& with, const rt::PlanRequest& request,
                        RankPrograms& programs) {
  const auto moves = [](const rt::PlanRoute& route) {
    return route.device == rt::OptionDevice::Cpu;
  };
  if (!programs.device || std::ranges::none_of(request.routes, moves)) return rt::Ok{};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> carriers;  // their codecs, and whose
  for (std::uint32_t codec = 0; codec < with.num_programs; ++codec) {
    programs.on_cpu.push_back(TRY(cpu_code_of(*with.programs[codec], false))->loaded);
    const std::uint32_t carrier = request.codecs[codec].carrier_codec;
    if (carrier != rt::kDense) carriers.emplace_back(carrier, codec);
  }
  std::ranges::sort(carriers);
  for (const auto& [carrier, codec] : carriers) {
    programs.on_cpu.push_back(TRY(cpu_code_of(*with.programs[codec], true))->loaded);
  }
  return rt::Ok{};
}

CallResult<std::unique_ptr<cinch_sync>> open_sync(const cinch_transport& transport,
                                                  const OpenArguments& with) {
  auto made = std::make_unique<cinch_sync>();
  made->transport = transport.parts;
  made->device = with.options.device;
  rt::Transport& over = *transport.parts->transport;
  auto programs = TRY(rank_programs(with.programs, with.num_programs, with.options));
  auto request = plan_request(with.options, over.world(), programs);
  CINCH_TRY(request);
  request->tensors = TRY(
      plan_tensors(with.tensors, with.num_tensors, with.num_programs, over.world(), made->given));
  if (request->plan.empty()) request->plan = rt::usual_plan(*request);
  CINCH_TRY(add_routes(with.tensors, made->given, *request));
  if (rt::is_plan_file(request->plan)) request = TRY(follow_plan_file(std::move(*request)));
  CINCH_TRY(add_carriers(with, *request, programs));
  CINCH_TRY(add_cpu_code(with, *request, programs));
  made->num_programs = with.num_programs;
  made->plan_tensors.resize(made->given.size());
  for (std::uint32_t t = 0; t < made->given.size(); ++t) made->plan_tensors[made->given[t]] = t;
  rt::SyncOptions options{.programs = programs.on_cpu, .device = programs.device};
  options.threads = with.options.threads;
  options.seed = with.options.seed;
  options.machine_ranks = with.options.ranks_per_machine;
  if (with.options.timeout_ms > 0)
    options.timeout = std::chrono::milliseconds(with.options.timeout_ms);
  if (request->plan == "auto") {
    auto chosen = TRY(choose_plan(with.options, std::move(*request), made->given, options, over));
    if (const auto& choice = chosen.choice) made->choice = choice->reason;
    request = std::move(chosen.request);
  }
  request->rank = over.rank();
  auto plan = TRY(rt::build_plan(*request));
  made->plan = rt::print_plan(plan, over.rank());
  options.plan = std::make_shared<const rt::Plan>(std::move(plan));
  made->session = TRY(rt::SyncSession::open(options, over));
  return made;
}

CallStatus read_tensors(cinch_sync& sync, const cinch_tensor* gradients,
                        const cinch_tensor* updates, std::size_t count) {
  if (count != sync.given.size()) {
    return invalid(std::to_string(count) + " tensors, opened for " +
                   std::to_string(sync.given.size()));
  }
  if (count > 0 && (gradients == nullptr || updates == nullptr)) {
    return invalid("gradients or updates is null");
  }
  sync.gradients.clear();
  sync.updates.clear();
  for (const std::size_t place : sync.given) {
    const auto gradient = tensor_view(gradients, place, sync.device);
    const auto update = tensor_view(updates, place, sync.device);
    if (!gradient) return fail_at(place, gradient.error());
    if (!update) return fail_at(place, update.error());
    sync.gradients.emplace_back(gradient->data, gradient->dtype, gradient->num_elems);
    sync.updates.push_back(*update);
  }
  return rt::Ok{};
}

// Wrong arguments on one rank end the others' step, too: they would otherwise wait for this rank.
CallStatus step(cinch_sync& sync, std::uint64_t number, const cinch_tensor* gradients,
                const cinch_tensor* updates, std::size_t count) {
  CallStatus status = read_tensors(sync, gradients, updates, count);
  if (!status) {
    const rt::Status told =
        sync.session->give_up({rt::ErrorKind::InvalidArgument, status.error().message});
    return told ? status : done(told);
  }
  return done(sync.session->step(sync.gradients, sync.updates, number));
}

CallStatus load_states(cinch_sync& sync, const void* const* data, const std::size_t* sizes,
                       std::size_t num_ranks, cinch_sync_restored* restored) {
  if (num_ranks > 0 && (data == nullptr || sizes == nullptr)) {
    return invalid("data or sizes is null");
  }
  CINCH_TRY(check_restored(restored));
  std::vector<std::vector<std::uint8_t>> saved;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const auto* const bytes = static_cast<const std::uint8_t*>(data[rank]);
    if (bytes == nullptr) return invalid("a rank's data is null");
    saved.emplace_back(bytes, bytes + sizes[rank]);
  }
  const auto report = TRY(sync.session->restore_states(saved));
  return tell_restored(sync, report, restored);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_sync_open(cinch_transport* transport, const cinch_program* const* programs,
                             size_t num_programs, const cinch_sync_tensor* tensors,
                             size_t num_tensors, const cinch_sync_options* options,
                             cinch_sync** sync, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr || sync == nullptr) {
      return invalid("transport or sync is null");
    }
    OpenArguments with{programs, num_programs, tensors, num_tensors, {}};
    if (options != nullptr) {
      with.options = TRY(read_struct(options, offsetof(cinch_sync_options, samples), "options"));
    }
    return use_alone(transport->parts->in_use, [&]() -> CallStatus {
      if (transport->parts->stepping != nullptr)
        return invalid("a step is under way over this transport");
      auto made = open_sync(*transport, with);
      if (!made) {
        const CallError& error_of_open = made.error();
        transport->parts->transport->abandon(
            {rt::ErrorKind::InvalidArgument, error_of_open.message});
        return tl::unexpected<CallError>(error_of_open);
      }
      *sync = made->release();
      return rt::Ok{};
    });
  });
}

void cinch_sync_release(cinch_sync* sync) {
  if (sync == nullptr) return;
  const auto transport = sync->transport;
  sync->session.reset();
  if (transport->stepping == sync) transport->stepping = nullptr;
  delete sync;
}

cinch_status cinch_sync_set(cinch_sync* sync, size_t program, const char* parameter, double value,
                            cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) -> CallStatus {
    if (parameter == nullptr) return invalid("parameter is null");
    if (program >= of.num_programs) return invalid("no such program");
    return done(of.session->set_parameter(static_cast<std::uint32_t>(program), parameter, value));
  });
}

cinch_status cinch_sync_set_input(cinch_sync* sync, size_t tensor, const char* input,
                                  const cinch_tensor* array, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) -> CallStatus {
    if (input == nullptr || array == nullptr) return invalid("input or array is null");
    CINCH_TRY(check_index(tensor, of.plan_tensors.size(), "tensor"));
    const auto view = tensor_view(array, 0, of.device);
    if (!view) {
      return fail(view.error().status, std::string("input ") + input + ": " + view.error().message);
    }
    return done(of.session->set_input(of.plan_tensors[tensor], input, *view));
  });
}

cinch_status cinch_sync_step(cinch_sync* sync, uint64_t number, const cinch_tensor* gradients,
                             const cinch_tensor* updates, size_t count, cinch_error* error) {
  return guarded_on(sync, error,
                    [&](cinch_sync& of) { return step(of, number, gradients, updates, count); });
}

void cinch_sync_stop(cinch_sync* sync) {
  if (sync != nullptr) sync->session->ask_to_stop();
}

int32_t cinch_sync_is_stopping(const cinch_sync* sync) {
  return sync != nullptr && sync->session->is_asked_to_stop() ? 1 : 0;
}

const char* cinch_sync_plan(const cinch_sync* sync) {
  return sync == nullptr ? "" : sync->plan.c_str();
}

const char* cinch_sync_choice(const cinch_sync* sync) {
  return sync == nullptr ? "" : sync->choice.c_str();
}

cinch_status cinch_sync_states_save(cinch_sync* sync, void* data, size_t* size,
                                    cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) -> CallStatus {
    return copy_out(TRY(of.session->save_states()), "states", data, size);
  });
}

cinch_status cinch_sync_states_load(cinch_sync* sync, const void* const* data, const size_t* sizes,
                                    size_t num_ranks, cinch_sync_restored* restored,
                                    cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) {
    return load_states(of, data, sizes, num_ranks, restored);
  });
}

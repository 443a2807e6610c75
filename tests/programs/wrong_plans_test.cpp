// Tests the checker of buffer contents (check_versions) with wrong plans. Each is
// made from a right plan, which the checker accepts, by one error that fusion or the assignment of
// buffers might make.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/kir/text/text.h"
#include "codegen/kir/verifier.h"
#include "tests/programs/harness/compile.h"

namespace cinch::testing {
namespace {

using kir::Instr;
using kir::InstrKind;
using kir::KernelProgram;
using rt::BufferIndex;
using rt::EntryKind;
using rt::StepKind;
using Steps = std::vector<rt::Step>;

struct Plant {
  const char* name;
  const char* program;
  // Was there a place for the error?
  std::function<bool(KernelProgram&)> mistake;
  codegen::StateUpdate states = codegen::StateUpdate::SecondBuffer;
};

// Fusion once had the first two errors.
constexpr const char* kRace = R"(compressor planted {
  size k = clamp(n / 4, 1, n)
  wire { w: [f32; n], t: f32, b: [f32; n] }
  encode(g: [f32; n]) {
    let i = random_index(k, size: n)
    let x = g[i]
    let mut a = scatter(x, at: i, size: n)
    let w = a + 1.0
    let t = sum(w * sum(x * sum(x)))
    a[random_index(n, size: n)] = g * 100.0
    wire { w, t, b: a }
  }
  decode(w) { w.w + w.b * w.t }
})";
constexpr const char* kLate = R"(compressor planted {
  size k = clamp(n / 4, 1, n)
  wire { w: [f32; n], t: f32, b: [f32; n] }
  encode(g: [f32; n]) {
    let i = random_index(k, size: n)
    let x = g[i]
    let mut a = scatter(x, at: i, size: n)
    let w = a + 1.0
    let t = sum(w * sum(x * sum(x * sum(x))))
    a[random_index(k, size: n)] = x * 100.0
    wire { w, t, b: a }
  }
  decode(w) { w.w + w.b * w.t }
})";
constexpr const char* kSums = R"(compressor planted {
  wire { x: [f32; n], y: f32 }
  encode(g: [f32; n]) {
    let m = mean(g)
    let d = g - m
    let s = sqrt(mean(d * d))
    wire { x: d / s, y: m + max(d / s) }
  }
  decode(w) { w.x + w.y }
})";
constexpr const char* kLoop = R"(compressor planted {
  wire { x: [f32; n], y: f32 }
  encode(g: [f32; n]) {
    let mut a = abs(g)
    let mut t = 1.0
    for i in 0..3 {
      a = a - mean(a)
      t = t + max(a)
    }
    wire { x: a, y: t }
  }
  decode(w) { w.x + w.y }
})";
constexpr const char* kBranch = R"(compressor planted {
  wire { x: [f32; n], y: f32 }
  encode(g: [f32; n]) {
    let mut a = g
    let mut t = 1.0
    if mean(g) > 0.0 {
      a = g * 2.0
      t = max(g)
    } else {
      a = g + 1.0
      t = min(g)
    }
    wire { x: a, y: t }
  }
  decode(w) { w.x + w.y }
})";
constexpr const char* kStates = R"(compressor planted {
  state m: [f32; n] = 0.0
  wire { x: [f32; n], y: f32 }
  encode(g: [f32; n]) {
    let s = m * 0.9 + g
    m = s
    wire { x: s * 2.0, y: mean(g) }
  }
  decode(w) { w.x + w.y }
})";
constexpr const char* kSelected = R"(compressor planted {
  wire { count m <= n, i: [u32; m], v: [f32; m], h: [u32; 16] }
  encode(g: [f32; n]) {
    let i = nonzero(g > 0.5, limit: n)
    wire { i, v: g[i], h: histogram((bitcast<u32>(g) >> 28), bins: 16) }
  }
  decode(w) { scatter(w.v, at: w.i, size: n) }
})";
constexpr const char* kSync = R"(compressor planted {
  sync(g: [f32; n]) {
    let s = allreduce(abs(g), sum)
    allreduce(g * s, sum)
  }
})";

constexpr const char* kRouted = R"(compressor planted {
  sync(g: [f32; n]) {
    let part = filter(g, where: g > 0)
    g + sum(sendrecv(part, to: (worker + 1) % world))
  }
})";

Steps& steps_of(KernelProgram& program, EntryKind entry = EntryKind::Encode) {
  return program.entries[static_cast<std::size_t>(entry)].steps;
}

BufferIndex buffer_called(const KernelProgram& program, std::string_view name) {
  const auto has_name = [&](const rt::BufferInfo& b) { return b.name == name; };
  const auto found = std::ranges::find_if(program.buffers, has_name);
  return static_cast<BufferIndex>(found - program.buffers.begin());
}

// The launch that writes the buffer: its place in the steps.
Steps::iterator writer_of(KernelProgram& program, Steps& steps, BufferIndex buffer) {
  return std::ranges::find_if(steps, [&](const rt::Step& step) {
    return step.kind == StepKind::Launch &&
           std::ranges::any_of(program.kernels[step.index].writes,
                               [&](const kir::Touch& t) { return t.buffer == buffer; });
  });
}

bool move_to_end(KernelProgram& program, std::string_view field) {
  Steps& steps = steps_of(program);
  const auto at = writer_of(program, steps, buffer_called(program, field));
  if (at == steps.end()) return false;
  std::rotate(at, at + 1, steps.end());
  return true;
}

bool move_to_front(KernelProgram& program, std::string_view field) {
  Steps& steps = steps_of(program);
  const auto at = writer_of(program, steps, buffer_called(program, field));
  if (at == steps.end()) return false;
  std::rotate(steps.begin(), at, at + 1);
  return true;
}

// The first step of a kind, wherever it stands.
rt::Step* find_step(Steps& steps, StepKind kind) {
  for (rt::Step& step : steps) {
    if (step.kind == kind) return &step;
    for (Steps* inner : {&step.cond, &step.body, &step.orelse}) {
      if (rt::Step* found = find_step(*inner, kind)) return found;
    }
  }
  return nullptr;
}

bool erase_step(Steps& steps, StepKind kind) {
  const auto at = std::ranges::find(steps, kind, &rt::Step::kind);
  if (at != steps.end()) return steps.erase(at), true;
  return std::ranges::any_of(steps, [&](rt::Step& step) {
    return erase_step(step.cond, kind) || erase_step(step.body, kind) ||
           erase_step(step.orelse, kind);
  });
}

bool erase_role(KernelProgram& program, rt::KernelRole role) {
  return std::erase_if(steps_of(program), [&](const rt::Step& step) {
           return step.kind == StepKind::Launch && program.kernels[step.index].info.role == role;
         }) > 0;
}

Instr* find_instr(KernelProgram& program, InstrKind kind) {
  for (kir::Kernel& kernel : program.kernels) {
    for (kir::Section& section : kernel.sections) {
      for (Instr& instr : section.instrs) {
        if (instr.kind == kind) return &instr;
      }
    }
  }
  return nullptr;
}

void rename(KernelProgram& program, BufferIndex from, BufferIndex to) {
  const auto in_touches = [&](std::vector<kir::Touch>& touches) {
    for (kir::Touch& touch : touches) touch.buffer = touch.buffer == from ? to : touch.buffer;
  };
  for (kir::Kernel& kernel : program.kernels) {
    in_touches(kernel.reads);
    in_touches(kernel.writes);
    for (kir::Section& section : kernel.sections) {
      for (Instr& instr : section.instrs) std::ranges::replace(instr.buffers, from, to);
    }
  }
  for (auto& results : program.results) in_touches(results);
}

// Gives two workspace arrays that are both in use one place.
bool share_workspace(KernelProgram& program) {
  std::vector<BufferIndex> found;
  for (BufferIndex b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].name.starts_with("reduced") || program.buffers[b].name == "m" ||
        program.buffers[b].name == "s") {
      found.push_back(b);
    }
  }
  if (found.size() < 2) return false;
  rename(program, found[1], found[0]);
  return true;
}

// Puts the new state where the old one is, although kernels still read that.
bool update_in_place(KernelProgram& program) {
  for (BufferIndex b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].role != rt::BufferRole::StateNext) continue;
    rename(program, b, buffer_called(program, "m"));
    return true;
  }
  return false;
}

// Adds a kernel that reads the state again after it has changed.
bool read_again(KernelProgram& program) {
  Steps& steps = steps_of(program);
  const BufferIndex state = buffer_called(program, "m");
  for (const rt::Step& step : steps) {
    if (step.kind != StepKind::Launch) continue;
    const auto reads = program.kernels[step.index].reads;
    if (std::ranges::none_of(reads, [&](const kir::Touch& t) { return t.buffer == state; })) {
      continue;
    }
    steps.push_back(step);
    return true;
  }
  return false;
}

// In the kernel that changes the state, moves its loads behind the store, or to other elements.
bool spoil_lanes(KernelProgram& program, bool moves_behind) {
  const BufferIndex state = buffer_called(program, "m");
  for (kir::Kernel& kernel : program.kernels) {
    for (kir::Section& section : kernel.sections) {
      const auto touches = [&](InstrKind kind) {
        return std::ranges::find_if(section.instrs, [&](const Instr& instr) {
          return instr.kind == kind && instr.buffers.front() == state;
        });
      };
      const auto load = touches(InstrKind::load_linear);
      const auto store = touches(InstrKind::store_linear);
      if (load == section.instrs.end() || store == section.instrs.end()) continue;
      if (moves_behind) {
        std::rotate(load, load + 1, section.instrs.end());
      } else {
        load->operands.clear();
      }
      return true;
    }
  }
  return false;
}

const Plant kPlants[] = {
    {"race_store_behind_the_second_scatter", kRace,
     [](KernelProgram& p) { return move_to_end(p, "w"); }},
    {"late_store_behind_the_second_scatter", kLate,
     [](KernelProgram& p) { return move_to_end(p, "w"); }},
    {"scatter_before_its_base", kLate, [](KernelProgram& p) { return move_to_front(p, "b"); }},
    {"base_not_zeroed", kRace,
     [](KernelProgram& p) { return erase_step(steps_of(p), StepKind::Zero); }},
    {"sum_not_finished", kSums,
     [](KernelProgram& p) { return erase_role(p, rt::KernelRole::Finish); }},
    {"no_sweep_at_all", kSums,
     [](KernelProgram& p) { return erase_role(p, rt::KernelRole::Sweep); }},
    {"reader_before_its_sum", kSums, [](KernelProgram& p) { return move_to_front(p, "x"); }},
    {"two_sums_in_one_place", kSums, share_workspace},
    {"load_of_another_buffer", kSums,
     [](KernelProgram& p) {
       find_instr(p, InstrKind::load_linear)->buffers = {buffer_called(p, "output")};
       return true;
     }},
    {"store_to_another_buffer", kSums,
     [](KernelProgram& p) {
       find_instr(p, InstrKind::store_linear)->buffers = {buffer_called(p, "output")};
       return true;
     }},
    {"read_not_declared", kSums, [](KernelProgram& p) { return p.kernels[0].reads.clear(), true; }},
    {"write_not_declared", kSums,
     [](KernelProgram& p) { return p.kernels[0].writes.clear(), true; }},
    {"another_value_declared", kSums,
     [](KernelProgram& p) { return ++p.kernels[0].writes.at(0).version > 0; }},
    {"what_a_loop_carries_not_copied", kLoop,
     [](KernelProgram& p) { return erase_step(steps_of(p), StepKind::Copy); }},
    {"another_value_carried", kLoop,
     [](KernelProgram& p) {
       rt::Step* copy = find_step(steps_of(p), StepKind::Copy);
       if (copy != nullptr) copy->index2 = buffer_called(p, "gradient");
       return copy != nullptr;
     }},
    {"loop_without_first_values", kLoop,
     [](KernelProgram& p) {
       Steps& steps = steps_of(p);
       const auto loop = std::ranges::find(steps, StepKind::For, &rt::Step::kind);
       std::rotate(steps.begin(), loop, loop + 1);
       return true;
     }},
    {"body_behind_the_loop", kLoop,
     [](KernelProgram& p) {
       Steps& steps = steps_of(p);
       const auto loop = std::ranges::find(steps, StepKind::For, &rt::Step::kind);
       const Steps body = std::exchange(loop->body, {});
       steps.insert(loop + 1, body.begin(), body.end());
       return true;
     }},
    {"branch_left_out", kBranch,
     [](KernelProgram& p) { return find_step(steps_of(p), StepKind::If)->orelse.clear(), true; }},
    {"branches_exchanged", kBranch,
     [](KernelProgram& p) {
       rt::Step* branch = find_step(steps_of(p), StepKind::If);
       std::swap(branch->body, branch->orelse);
       return true;
     }},
    {"condition_not_computed", kBranch,
     [](KernelProgram& p) {
       Steps& steps = steps_of(p);
       const auto branch = std::ranges::find(steps, StepKind::If, &rt::Step::kind);
       std::erase_if(steps, [&, flag = branch->index](const rt::Step& step) {
         return step.kind == StepKind::Launch &&
                std::ranges::any_of(p.kernels[step.index].writes,
                                    [&](const kir::Touch& t) { return t.buffer == flag; });
       });
       return true;
     }},
    {"old_state_read_after_the_new_one", kStates,
     [](KernelProgram& p) { return update_in_place(p) && read_again(p); }},
    {"state_read_again", kStates, read_again, codegen::StateUpdate::InPlace},
    {"own_element_loaded_after_its_store", kStates,
     [](KernelProgram& p) { return spoil_lanes(p, true); }, codegen::StateUpdate::InPlace},
    {"elements_of_other_lanes", kStates, [](KernelProgram& p) { return spoil_lanes(p, false); },
     codegen::StateUpdate::InPlace},
    {"count_not_zeroed", kSelected,
     [](KernelProgram& p) { return erase_step(steps_of(p), StepKind::Zero); }},
    {"sent_before_it_is_there", kSync,
     [](KernelProgram& p) {
       Steps& steps = steps_of(p, EntryKind::Sync);
       const auto first = std::ranges::find(steps, StepKind::Collective, &rt::Step::kind);
       std::rotate(steps.begin(), first, first + 1);
       return true;
     }},
    {"sent_before_its_receiver_is_there", kRouted,
     [](KernelProgram& p) {
       Steps& steps = steps_of(p, EntryKind::Sync);
       const auto first = std::ranges::find(steps, StepKind::Collective, &rt::Step::kind);
       const BufferIndex receiver = first->scalars[0];
       return std::erase_if(steps, [&](const rt::Step& step) {
                return step.kind == StepKind::Launch &&
                       std::ranges::any_of(p.kernels[step.index].writes, [&](const kir::Touch& t) {
                         return t.buffer == receiver;
                       });
              }) > 0;
     }},
    {"receiver_and_length_exchanged", kRouted,
     [](KernelProgram& p) {
       rt::Step* sent = find_step(steps_of(p, EntryKind::Sync), StepKind::Collective);
       std::swap(sent->scalars[0], sent->scalars[1]);
       return true;
     }},
    {"count_received_elsewhere", kRouted,
     [](KernelProgram& p) {
       rt::Step* sent = find_step(steps_of(p, EntryKind::Sync), StepKind::Collective);
       sent->scalars[2] = sent->scalars[1];
       return true;
     }},
};

KernelProgram plan_of(const Plant& plant) {
  const auto file = make_program("planted", plant.program);
  const auto compiled = compile(*file, plant.states);
  if (!compiled) ADD_FAILURE() << compiled.error();
  return compiled ? compiled->kernels : KernelProgram{};
}

class WrongPlan : public ::testing::TestWithParam<Plant> {};

TEST_P(WrongPlan, IsRefused) {
  KernelProgram program = plan_of(GetParam());
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(kir::first_version_complaint(program), "");
  ASSERT_TRUE(GetParam().mistake(program)) << kir::print(program);
  const std::string complaint = kir::first_version_complaint(program);
  EXPECT_NE(complaint, "") << kir::print(program);
  RecordProperty("complaint", complaint);
}

INSTANTIATE_TEST_SUITE_P(All, WrongPlan, ::testing::ValuesIn(kPlants),
                         [](const auto& plant) { return std::string(plant.param.name); });

}  // namespace
}  // namespace cinch::testing

// libcinch_compiler.so: the service behind one C function, which the C API opens when it compiles.
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "compiler/service/compile.h"
#include "compiler/service/library_list.h"
#include "dsl/diag/render.h"
#include "runtime/c_api/cinch.h"
#include "runtime/c_api/compiler_abi.h"
#include "runtime/core/check.h"

namespace cinch::service {
namespace {

cinch_status status_of(Fault fault) {
  switch (fault) {
    case Fault::Program:
      return CINCH_PROGRAM;
    case Fault::Request:
    case Fault::Argument:
      return CINCH_INVALID_ARGUMENT;
    case Fault::File:
      return CINCH_IO;
    case Fault::Unavailable:
      return CINCH_UNAVAILABLE;
    case Fault::Internal:
      return CINCH_INTERNAL;
  }
  return CINCH_INTERNAL;
}

ProgramRequest program_of(const cinch_compiler_request& request) {
  ProgramRequest made;
  if (request.text != nullptr) {
    made.text = std::string(request.text, request.text_size);
    made.program = "text";
  }
  if (request.program != nullptr) made.program = request.program;
  made.bindings.assign(request.bindings, request.bindings + request.num_bindings);
  if (request.states == CINCH_STATES_IN_PLACE) made.states = codegen::StateUpdate::InPlace;
  made.is_ahead_of_time = request.is_ahead_of_time != 0;
  made.is_improved_later = true;
  made.is_carrier = request.is_carrier != 0;
  made.replaces_code = request.give_better != nullptr;
  made.headers.include_folders.assign(request.include_folders,
                                      request.include_folders + request.num_include_folders);
  if (request.compile_commands != nullptr) made.headers.compile_commands = request.compile_commands;
  if (request.confine != nullptr) made.headers.confine = request.confine;
  return made;
}

codegen::Target target_of(const cinch_compiler_request& request) {
  if (request.cpu != nullptr) return {codegen::TargetKind::Cpu, request.cpu};
  return {codegen::TargetKind::Cuda, request.arch};
}

void list_programs(const cinch_compiler_request& request) {
  FrontEnd front_end;
  const nlohmann::json list = list_library(front_end);
  front_end.end_if_errors();
  const std::string text = list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  request.give_image(request.context, text.data(), text.size());
}

void give_better_code(const cinch_compiler_request& request) {
  Hash128 hashes[2];
  if (request.better_size < sizeof hashes) return;
  std::memcpy(hashes, request.better, sizeof hashes);
  const std::string name(static_cast<const char*>(request.better), request.better_size);
  if (const auto bytes = find_better({hashes[0], hashes[1], name.substr(sizeof hashes)}))
    request.give_image(request.context, bytes->data(), bytes->size());
}

void compile(const cinch_compiler_request& request) {
  if (request.lists_programs != 0) return list_programs(request);
  if (request.better != nullptr) return give_better_code(request);
  FrontEnd front_end;
  const ImageBytes image = make_image_bytes(front_end, program_of(request), target_of(request));
  if (image.better) {
    // A name in bytes: the hashes, then the folder.
    const Hash128 hashes[] = {image.better->key, image.better->imports};
    const std::string name =
        std::string(reinterpret_cast<const char*>(hashes), sizeof hashes) + image.better->folder;
    request.give_better(request.context, name.data(), name.size());
  }
  // A program with warnings is not kept in the cache, so they are here whenever it is compiled.
  const auto& warnings = front_end.sink.all();
  if (!warnings.empty()) {
    const std::string text = dsl::render_text(warnings, front_end.sources);
    request.give_warnings(request.context, text.data(), text.size());
  }
  request.give_image(request.context, image.bytes.data(), image.bytes.size());
}

}  // namespace
}  // namespace cinch::service

extern "C" __attribute__((visibility("default"))) int32_t
cinch_compiler_compile(const cinch_compiler_request* request) {
  if (request->version != CINCH_COMPILER_ABI_VERSION) return 1;
  const auto give = [&](cinch_status status, std::string_view message) {
    request->give_error(request->context, status, message.data(), message.size());
  };
  try {
    cinch::service::compile(*request);
  } catch (const cinch::service::ServiceError& error) {
    give(cinch::service::status_of(error.fault()), error.what());
  } catch (const cinch::InternalError& error) {
    const bool is_limit = error.kind() == cinch::InternalErrorKind::Limitation;
    give(is_limit ? CINCH_UNAVAILABLE : CINCH_INTERNAL, is_limit ? error.message() : error.what());
  } catch (const std::bad_alloc&) {
    give(CINCH_OUT_OF_MEMORY, "no memory");
  } catch (const std::exception& error) {
    give(CINCH_INTERNAL, error.what());
  } catch (...) {
    give(CINCH_INTERNAL, "an exception of an unknown type");
  }
  return 0;
}

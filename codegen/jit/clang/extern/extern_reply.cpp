#include "codegen/jit/clang/extern/read_extern.h"

namespace cinch::clang_backend {
namespace {

struct OwnReply : CinchExternReply {
  ExternAnswer answer;
  std::vector<CinchExternNote> own_notes;
  std::vector<CinchExternFile> own_files;
};

}  // namespace

CinchExternReply* make_reply(ExternAnswer answer) {
  auto* reply = new OwnReply{};
  reply->answer = std::move(answer);
  for (const HeaderError& each : reply->answer.notes) {
    reply->own_notes.push_back(
        {each.text.c_str(), each.place.path.c_str(), each.place.begin, each.place.end});
  }
  for (const HeaderFile& each : reply->answer.files) {
    reply->own_files.push_back({each.path.c_str(), each.text.data(), each.text.size()});
  }
  reply->outcome = static_cast<int>(reply->answer.outcome);
  reply->message = reply->answer.message.c_str();
  reply->source = reply->answer.source.c_str();
  reply->work = reply->answer.work;
  reply->notes = reply->own_notes.data();
  reply->num_notes = reply->own_notes.size();
  reply->files = reply->own_files.data();
  reply->num_files = reply->own_files.size();
  return reply;
}

CinchExternReply* no_memory_reply() {
  ExternAnswer answer;
  answer.outcome = rt::ExternOutcome::NoMemory;
  return make_reply(std::move(answer));
}

void release_extern(CinchExternReply* reply) {
  delete static_cast<OwnReply*>(reply);
}

}  // namespace cinch::clang_backend

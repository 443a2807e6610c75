// Lists places to search for NVIDIA's libraries, in the order of NVIDIA's own tools. The caller
// opens them.
#pragma once
#include <string>
#include <vector>

namespace cinch::codegen {

struct LibraryCandidate {
  std::string origin;           // for people: "pip wheel", "system loader"
  std::string path;             // a file, or a bare name for the loader
  bool only_if_loaded = false;  // use it only if the process has loaded it already
};

struct LibraryQuery {
  std::string stem;                  // "libnvrtc.so"
  std::vector<std::string> sonames;  // newest first: "libnvrtc.so.13"
  std::string override_variable;     // "CINCH_NVRTC": a file or a folder
};

/// Candidates in order; files in folders are listed only if they exist. Reads the environment
/// variables named in nvrtc.h.
std::vector<LibraryCandidate> library_candidates(const LibraryQuery& query);

}  // namespace cinch::codegen

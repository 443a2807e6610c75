// The table of environment variables; docs/command_line.md has the same rows.
#include "compiler/driver/arguments/help.h"

namespace cinch::driver {

namespace {

constexpr EnvironmentVariable kVariables[] = {
    // Output.
    {"NO_COLOR", "If set and not empty, no output has colour. --color=always overrides it."},
    {"TERM", "If it is dumb, no output has colour."},
    {"TMPDIR", "The folder for temporary files and for reports of internal errors; else /tmp."},
    // Programs.
    {"CINCH_STDLIB", "The folder of the standard library."},
    {"CINCH_TUNING",
     "A file with tuning numbers of this machine, instead of cinch/tuning.json in the folder of "
     "settings; off uses the built-in numbers alone."},
    // The cache.
    {"CINCH_CACHE", "off or 0: compiled programs are neither kept nor reused."},
    {"CINCH_CACHE_DIR", "The folder of compiled programs, instead of cinch in the cache folder."},
    {"CINCH_CACHE_SHARED",
     "More folders of compiled programs, separated by colons. Cinch reads them and never writes to "
     "them."},
    {"CINCH_CACHE_MAX_BYTES",
     "The most that the cache keeps, such as 256Mi. The programs unused for longest are removed."},
    {"CINCH_BACKGROUND",
     "off or 0: nothing is compiled in the background. Code that sessions of the C API run is "
     "fully optimised at once."},
    {"XDG_CACHE_HOME", "The cache folder; else ~/.cache. A relative path is ignored."},
    {"XDG_CONFIG_HOME", "The folder of settings; else ~/.config. A relative path is ignored."},
    {"HOME", "The folder that ~ stands for in these defaults."},
    // Libraries.
    {"CINCH_LIBRARY", "The file libcinch.so that the Python package opens."},
    {"CINCH_COMPILER", "The file libcinch_compiler.so, for programs that link libcinch.so."},
    {"CINCH_CLANG_LIBRARY", "The file libcinch_clang.so, which compiles for CPUs."},
    {"CINCH_NVRTC", "NVIDIA's NVRTC, which compiles for GPUs: a file, or a folder to search."},
    {"CINCH_NCCL", "The file libnccl.so.2, for transport nccl."},
    {"CINCH_MPI", "The file libcinch_mpi.so, for transport mpi."},
    {"CINCH_MPIRUN", "The mpirun that starts ranks; else the one beside MPI's library or in PATH."},
    {"CINCH_UCX", "The file libcinch_ucx.so, for transport ucx."},
    {"CINCH_UCX_LIBRARY", "The file libucp.so.0 of UCX."},
    {"CINCH_SITE_PACKAGES",
     "Folders of Python packages, separated by colons, in which NVIDIA's libraries are searched."},
    {"VIRTUAL_ENV", "Its Python packages are searched for NVIDIA's libraries."},
    {"CONDA_PREFIX", "Its libraries are searched for NVIDIA's libraries."},
    {"CUDA_PATH", "A CUDA toolkit whose libraries are searched last."},
    {"CUDA_HOME", "A CUDA toolkit whose libraries are searched last."},
    {"PATH", "The folders in which mpirun is searched."},
    // Ranks.
    {"CINCH_SECRET", "The secret by which ranks of transport ucx know each other."},
    {"CINCH_LAUNCHED",
     "Set by the command for the ranks that it starts, so that these start none."},
    {"RANK", "The number of this rank over transport ucx, as torchrun sets it."},
    {"WORLD_SIZE", "The number of ranks over transport ucx, as torchrun sets it."},
    {"OMPI_COMM_WORLD_RANK", "Set by Open MPI's mpirun. Rank 0 reports for all ranks."},
    {"OMPI_COMM_WORLD_SIZE",
     "Set by Open MPI's mpirun. This process is then one of its ranks, and the transport is mpi."},
    {"PMIX_RANK", "Set by launchers such as srun. This process is then a rank of transport mpi."},
    {"PMI_RANK", "Set by MPICH's launcher. This process is then a rank of transport mpi."},
    {"NCCL_MULTI_RANK_GPU_ENABLE", "1: NCCL 2.30 and newer lets ranks share a GPU."},
    {"UCX_*", "Settings of UCX, which come before those that Cinch would choose."},
};

}  // namespace

std::span<const EnvironmentVariable> environment_variables() {
  return kVariables;
}

}  // namespace cinch::driver

# libcinch.so needs neither LLVM nor Clang nor the compiler nor anything of NVIDIA's, directly or behind what it links, and
# shows nothing but cinch_*.
file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${LIBRARY} RESOLVED_DEPENDENCIES_VAR needed
     UNRESOLVED_DEPENDENCIES_VAR missing)
foreach(library IN LISTS needed missing)
  if(library MATCHES "LLVM|clang-cpp|lld|cinch_compiler|cinch_clang|libcuda|libnvrtc")
    message(FATAL_ERROR "${LIBRARY} needs ${library}")
  endif()
endforeach()
execute_process(COMMAND nm -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
list(FILTER lines EXCLUDE REGEX " T cinch_[a-z_]+$")
if(lines)
  message(FATAL_ERROR "${LIBRARY} shows ${lines}")
endif()

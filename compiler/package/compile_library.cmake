# Fills FOLDER with the standard library, compiled with its default constants for ARCH, as a layer of the cache; touches STAMP when
# that is done:
#   cmake -DCINCH=… -DSTDLIB=… -DARCH=cuda:sm_90 -DFOLDER=… -DSTAMP=… -P compile_library.cmake
# Without NVRTC there is nothing for a GPU: that is said, the folder stays empty, and the next build tries again.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
if(ARCH MATCHES "^cuda:")
  execute_process(COMMAND ${CINCH} doctor --json OUTPUT_VARIABLE doctor COMMAND_ERROR_IS_FATAL ANY)
  string(JSON num_items LENGTH "${doctor}" items)
  math(EXPR last "${num_items} - 1")
  foreach(i RANGE ${last})
    string(JSON name GET "${doctor}" items ${i} name)
    if(name STREQUAL "NVRTC")
      string(JSON has_nvrtc GET "${doctor}" items ${i} found)
    endif()
  endforeach()
  if(NOT has_nvrtc)
    message(NOTICE "No NVRTC: the library is not compiled for ${ARCH}. Where it is installed, NVRTC must be, too, or what is compiled for CPUs alone is used. See `cinch doctor`.")
    return()
  endif()
endif()
# Of the builder's machine nothing shall show: neither his numbers nor what he has compiled before.
set(environment CINCH_CACHE=on CINCH_CACHE_DIR=${FOLDER} CINCH_CACHE_SHARED= CINCH_CACHE_MAX_BYTES= CINCH_TUNING=off CINCH_STDLIB=${STDLIB})
# States in place are other code of programs that have states; JAX compiles so.
foreach(words "warm;--target;${ARCH}" "warm;--target;${ARCH};--states;in-place" "pack")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${environment} ${CINCH} cache ${words} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(TOUCH ${STAMP})

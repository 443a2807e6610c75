# cinch_llvm: Clang, LLVM and LLD for the targets of this folder. Shared libraries of the system, or, in a self-contained
# build, archives, of which the linker takes what is called.
find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)
add_library(cinch_llvm INTERFACE)
target_include_directories(cinch_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
# By GNU's linker: the archives have functions without any code, which lie where the next one begins. Of two such entries of the table of
# frames mold puts either last, and an exception finds the last: std::bad_alloc ended the process where that was the empty one (the test
# c_api_unwind_table).
target_link_options(cinch_llvm INTERFACE -fuse-ld=bfd)
if(NOT CINCH_SELF_CONTAINED)
  target_link_directories(cinch_llvm INTERFACE ${LLVM_LIBRARY_DIRS})
  target_link_libraries(cinch_llvm INTERFACE lldELF lldCommon clang-cpp LLVM-19)
  return()
endif()

# LLD and Clang initialize every target that LLVM was built with. We compile for two; the others' functions do nothing.
set(CINCH_UNUSED_TARGETS "")
foreach(target ${LLVM_TARGETS_TO_BUILD})
  if(NOT target MATCHES "^(X86|AArch64)$")
    string(APPEND CINCH_UNUSED_TARGETS "CINCH_UNUSED_TARGET(${target})\n")
  endif()
endforeach()
configure_file(own_llvm.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/own_llvm.cpp @ONLY)
add_library(cinch_own_llvm OBJECT ${CMAKE_CURRENT_BINARY_DIR}/own_llvm.cpp)
target_include_directories(cinch_own_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_options(cinch_own_llvm PRIVATE -fno-rtti)

file(GLOB archives ${LLVM_LIBRARY_DIRS}/libclang*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)
find_library(CINCH_ZLIB NAMES libz.a REQUIRED)
find_library(CINCH_ZSTD NAMES libzstd.a REQUIRED)
# Without symbols for debuggers, which would be a quarter of the library.
target_link_options(cinch_llvm INTERFACE -Wl,--gc-sections -Wl,-s)
target_link_libraries(cinch_llvm INTERFACE $<TARGET_OBJECTS:cinch_own_llvm>
  -Wl,--start-group ${LLVM_LIBRARY_DIRS}/liblldELF.a ${LLVM_LIBRARY_DIRS}/liblldCommon.a ${archives} -Wl,--end-group
  ${CINCH_ZLIB} ${CINCH_ZSTD} m)

# cinch_images: the standard library, compiled. Not part of `all`: no test of the build tree needs it, and each change of the compiler
# would make all of it anew, which takes minutes of two cores, most of them NVRTC's. `./dev build` makes it, for GPUs where it finds NVRTC;
# `./dev package` and `wheel` get NVRTC first. What is not there is not installed.
file(GLOB_RECURSE programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/stdlib/*.cinch)

# Layers of the cache, for programs that are compiled by name, with their default constants: an installed Cinch finds them behind the
# user's own (compiler/service/compile_cache.h).
set(stamps "")
foreach(target cpu:x86-64-v3 cpu:x86-64-v4 cuda:sm_80 cuda:sm_90 cuda:sm_100 cuda:ptx)
  string(REPLACE ":" "-" name ${target})
  set(folder ${CMAKE_BINARY_DIR}/compiled/${name})
  add_custom_command(OUTPUT ${folder}.stamp
    COMMAND ${CMAKE_COMMAND} -DCINCH=$<TARGET_FILE:cinch> -DSTDLIB=${PROJECT_SOURCE_DIR}/stdlib -DARCH=${target} -DFOLDER=${folder}
            -DSTAMP=${folder}.stamp -P ${CMAKE_CURRENT_SOURCE_DIR}/compile_library.cmake
    DEPENDS cinch cinch_clang ${programs} ${CMAKE_CURRENT_SOURCE_DIR}/compile_library.cmake
    COMMENT "The standard library for ${target}" VERBATIM)
  list(APPEND stamps ${folder}.stamp)
  # Nobody but who installs may write what becomes code (docs/architecture.md, The cache of compiled programs).
  install(DIRECTORY ${folder}/ DESTINATION ${OWN_LIBRARIES}/compiled OPTIONAL
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
    DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()

# Images of each CPU level, for machines without the compiler's front end. Wrappers need a compressor to wrap, and parts hold functions alone.
list(FILTER programs EXCLUDE REGEX "/stdlib/(wrap|parts)/")
set(images "")
foreach(program ${programs})
  cmake_path(GET program STEM name)
  foreach(level x86-64 x86-64-v3 x86-64-v4)
    set(image ${CMAKE_BINARY_DIR}/images/${level}/${name}.image)
    add_custom_command(OUTPUT ${image}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/images/${level}
      COMMAND ${CMAKE_COMMAND} -E env CINCH_CACHE=off CINCH_STDLIB=. $<TARGET_FILE:cinch> build ${name} --emit=image --cpu ${level} --output ${image}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/stdlib  # images name their source: by a path that means the same anywhere
      DEPENDS cinch cinch_clang ${programs} COMMENT "${name} for ${level}" VERBATIM)
    list(APPEND images ${image})
  endforeach()
endforeach()
add_custom_target(cinch_images DEPENDS ${images} ${stamps})
install(DIRECTORY ${CMAKE_BINARY_DIR}/images/ DESTINATION ${OWN_LIBRARIES}/images OPTIONAL)

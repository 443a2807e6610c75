# cinch_images: the standard library, compiled for each CPU level, for machines without the compiler. Wrappers need a compressor to wrap.
file(GLOB_RECURSE programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/stdlib/*.cinch)
list(FILTER programs EXCLUDE REGEX "/stdlib/wrap/")
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
# Not part of `all`: they take about a minute of two cores, and the tests need none.
add_custom_target(cinch_images DEPENDS ${images})
install(DIRECTORY ${CMAKE_BINARY_DIR}/images/ DESTINATION ${OWN_LIBRARIES}/images OPTIONAL)

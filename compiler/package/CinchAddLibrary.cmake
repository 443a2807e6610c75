# cinch_add_library(NAME PROGRAMS … TARGETS … [DEPENDS …]): compiles programs to a library, again when one of them changes.
#   PROGRAMS  files, FILE:COMPRESSOR, or names of the standard library
#   TARGETS   what to compile for: cpu:x86-64-v3, cuda:sm_90 …
#   DEPENDS   files beside those that PROGRAMS are read from, imports and headers of C++ functions among them
# Link with NAME (a static library with its headers NAME.h and NAME.hpp) or NAME_shared. Both are in ${CMAKE_CURRENT_BINARY_DIR}/NAME.
# The cache variable CINCH_COMMAND names another `cinch` to compile with.
set(CINCH_COMMAND "" CACHE FILEPATH "the cinch that compiles; without it the one that is installed with this file")

cmake_policy(PUSH)
cmake_policy(SET CMP0116 NEW)  # paths in depfiles
function(cinch_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "PROGRAMS;TARGETS;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cinch_add_library(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  foreach(needed PROGRAMS TARGETS)
    if(NOT ARG_${needed})
      message(FATAL_ERROR "cinch_add_library(${name}): ${needed} is missing")
    endif()
  endforeach()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  _cinch_find_programs("${ARG_PROGRAMS}" programs files)
  list(JOIN ARG_TARGETS "," targets)
  set(command "${CINCH_COMMAND}")
  if(NOT command)
    set(command $<TARGET_FILE:Cinch::command>)
  endif()
  set(made ${folder}/lib${name}.a ${folder}/lib${name}.so ${folder}/${name}.h ${folder}/${name}.hpp ${folder}/${name}.json)
  add_custom_command(OUTPUT ${made}
    COMMAND ${command} build ${programs} --target ${targets} --name ${name} --output ${folder}
    DEPENDS ${files} ${ARG_DEPENDS} ${command}
    DEPFILE ${folder}/${name}.d
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "Compiling ${name} for ${targets}" VERBATIM)
  add_custom_target(${name}_compiled DEPENDS ${made})
  _cinch_import(${name} STATIC ${folder}/lib${name}.a)
  _cinch_import(${name}_shared SHARED ${folder}/lib${name}.so)
  add_dependencies(${name} ${name}_compiled)
  add_dependencies(${name}_shared ${name}_compiled)
endfunction()
cmake_policy(POP)

# Files by absolute paths (a compressor named behind a colon stays), names of the standard library as they are.
function(_cinch_find_programs programs result_programs result_files)
  set(found "")
  set(files "")
  foreach(program ${programs})
    if(program MATCHES "^(.*\\.cinch)(:[A-Za-z0-9_]+)?$")
      set(compressor "${CMAKE_MATCH_2}")
      cmake_path(ABSOLUTE_PATH CMAKE_MATCH_1 BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE file)
      list(APPEND files ${file})
      set(program ${file}${compressor})
    endif()
    list(APPEND found ${program})
  endforeach()
  set(${result_programs} ${found} PARENT_SCOPE)
  set(${result_files} ${files} PARENT_SCOPE)
endfunction()

function(_cinch_import target kind file)
  cmake_path(GET file PARENT_PATH folder)
  # CMake wants an imported target's folder of headers to exist when the project is configured.
  file(MAKE_DIRECTORY ${folder})
  add_library(${target} ${kind} IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${file} INTERFACE_INCLUDE_DIRECTORIES ${folder}
    INTERFACE_LINK_LIBRARIES Cinch::cinch)
endfunction()

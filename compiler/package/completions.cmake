# What the command itself writes: completions, where each shell looks for them, and manual pages.
set(COMPLETIONS ${CMAKE_CURRENT_BINARY_DIR}/completions)
set(completion_files "")
function(cinch_completion shell folder file)
  add_custom_command(OUTPUT ${COMPLETIONS}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${COMPLETIONS}
    COMMAND cinch completion ${shell} > ${COMPLETIONS}/${file}
    DEPENDS cinch COMMENT "Completion for ${shell}" VERBATIM)
  install(FILES ${COMPLETIONS}/${file} DESTINATION share/${folder})
  set(completion_files ${completion_files} ${COMPLETIONS}/${file} PARENT_SCOPE)
endfunction()
cinch_completion(bash bash-completion/completions cinch)
cinch_completion(zsh zsh/site-functions _cinch)
cinch_completion(fish fish/vendor_completions.d cinch.fish)
add_custom_target(cinch_completions ALL DEPENDS ${completion_files})

set(MANUAL ${CMAKE_CURRENT_BINARY_DIR}/man1)
add_custom_command(OUTPUT ${MANUAL}/cinch.1
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${MANUAL}
  COMMAND cinch man-pages ${MANUAL}
  DEPENDS cinch COMMENT "Manual pages" VERBATIM)
add_custom_target(cinch_manual ALL DEPENDS ${MANUAL}/cinch.1)
install(DIRECTORY ${MANUAL}/ DESTINATION share/man/man1)

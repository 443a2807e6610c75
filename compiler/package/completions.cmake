# Completions, where each shell looks for them.
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

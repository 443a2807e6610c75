# Licenses: ours, and those of what the installed files hold, as Debian's packages tell them.
set(NOTICES share/doc/cinch)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${NOTICES} RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${NOTICES})
foreach(held llvm-19-dev libclang-19-dev liblld-19-dev libstdc++-12-dev libtbb12 libfmt-dev libzstd-dev zlib1g-dev nlohmann-json3-dev libboost-context1.74-dev
    libcli11-dev libexpected-dev libxxhash-dev)
  install(FILES /usr/share/doc/${held}/copyright DESTINATION ${NOTICES}/held RENAME ${held} OPTIONAL)
endforeach()

# `cpack` writes a Debian package and an archive that runs from anywhere. tests/install compares the dependencies with what the
# files need.
set(CPACK_GENERATOR DEB TXZ)
set(CPACK_PACKAGE_NAME cinch)
set(CPACK_PACKAGE_CONTACT "The developers of Cinch")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compression compiler for gradients")
set(CPACK_PACKAGE_DESCRIPTION "Checks compressors that are written as array operators, bounds their payloads, and\ncompiles them to fused kernels. Holds its own LLVM and Clang.")
set(CPACK_PACKAGE_FILE_NAME cinch-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# The C++ library is what oneTBB needs. MPI alone needs Open MPI, under its names in Debian 12 and 13.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34), libgcc-s1, libstdc++6 (>= 11)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenmpi3 | libopenmpi40, libucx0")
include(CPack)

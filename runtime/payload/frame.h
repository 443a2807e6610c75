// What the host and kernels on a GPU both say of a payload's first words. One text, as
// runtime/image/kernel_abi.h: payload.h includes this file, and the CUDA emitter puts it in front
// of every program.

namespace cinch::rt {

inline constexpr unsigned int kPayloadMagicWord = 0x48434e43;  // "CNCH"
inline constexpr unsigned int kPayloadFormatVersion = 1;
inline constexpr unsigned int kPayloadNonFinite = 1;  // of the flags

}  // namespace cinch::rt

// entries.h: printed behind the text. Turns a kernel of any parameters into a function that takes
// pointers to their values, as a launch passes them.
namespace cinch {}

namespace cinch_emulated {

using namespace ::cinch;

template <int... I>
struct Indices {};
template <class T, T... I>
struct Sequence {
  using Type = Indices<I...>;
};

template <class Kernel>
struct Entry;
template <class... A>
struct Entry<void(A...)> {
  static __device__ __forceinline__ void call(void (*kernel)(A...), void** params) {
    call(kernel, params, typename __make_integer_seq<Sequence, int, sizeof...(A)>::Type());
  }
  template <int... I>
  static __device__ __forceinline__ void call(void (*kernel)(A...), void** params, Indices<I...>) {
    kernel(*static_cast<const A*>(params[I])...);
  }
};

}  // namespace cinch_emulated

// Code may not call a kernel by its name, so the call uses another name for the same function.
#define CINCH_EMULATED_ENTRY(symbol)                                                      \
  namespace cinch_emulated {                                                              \
  extern "C" __device__ decltype(symbol) cinch_emulated_kernel_##symbol __asm__(#symbol); \
  extern "C" __device__ void cinch_emulated_entry_##symbol(void** params) {               \
    Entry<decltype(symbol)>::call(cinch_emulated_kernel_##symbol, params);                \
  }                                                                                       \
  }

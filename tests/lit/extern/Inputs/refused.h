// Functions that no kernel may call, one reason each. refused.cinch says which.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline int counter = 0;
inline thread_local float last_seen = 0;
inline float global(float x) {
  return x + static_cast<float>(counter);
}
inline float writes_global(float x) {
  counter = 1;
  return x;
}
inline float per_thread(float x) {
  return x + last_seen;
}
inline float static_local(float x) {
  static float last = 0;
  last = x;
  return last;
}
inline float allocates(float x) {
  float* p = new float(x);
  const float y = *p;
  delete p;
  return y;
}
inline float allocates_in_c(float x) {
  float* p = static_cast<float*>(std::malloc(sizeof(float)));
  *p = x;
  return *p;
}
inline float holds_vector(float x) {
  std::vector<float> v(3, x);
  return v[0];
}
inline float throws(float x) {
  if (x < 0) throw x;
  return x;
}
inline float catches(float x) {
  try {
    return x;
  } catch (...) {
    return 0;
  }
}
inline float prints(float x) {
  std::printf("%f", static_cast<double>(x));
  return x;
}
struct Base {
  virtual float get(float x) const { return x; }
};
inline float virtual_call(float x) {
  const Base base;
  return base.get(x);
}
struct Object {
  float value;
  float get() const { return value; }
};
inline float member_call(float x) {
  const Object object{x};
  return object.get();
}
inline float recursive(float x) {
  return x > 1 ? recursive(x / 2) : x;
}
inline float even(float x);
inline float odd(float x) {
  return x < 1 ? 0 : even(x - 1);
}
inline float even(float x) {
  return x < 1 ? 1 : odd(x - 1);
}
inline float loops(float x) {
  while (x > 1) x /= 2;
  return x;
}
inline float loops_over_floats(float x) {
  for (float i = 0; i < x; i += 1) x -= 1;
  return x;
}
inline float changes_counter(float x) {
  for (int i = 0; i < 10; ++i) i -= x > 1;
  return x;
}
inline float wraps(float x) {
  for (unsigned char i = 0; i < 256; ++i) x += 1;
  return x;
}
[[clang::annotate("cinch::at_most", 0)]] inline float no_rounds(float x) {
  while (x > 1) x /= 2;
  return x;
}
inline float too_much(float x) {
  for (int i = 0; i < 2000; ++i) {
    for (int j = 0; j < 2000; ++j) x += 1;
  }
  return x;
}
inline float ranged(float x) {
  const float t[2] = {x, x};
  for (float y : t) x += y;
  return x;
}
inline float long_double(float x) {
  const long double y = x;
  return static_cast<float>(y * 2);
}
inline float half(float x) {
  return static_cast<float>(static_cast<_Float16>(x));
}
typedef float Four __attribute__((vector_size(16)));
inline float vectors(float x) {
  const Four v = {x, x, x, x};
  return v[0];
}
inline float intrinsic(float x) {
  __builtin_ia32_pause();
  return x;
}
inline float fused(float x) {
  return std::fma(x, x, x);
}
inline float jumps(float x) {
  if (x > 1) goto end;
  x += 1;
end:
  return x;
}
inline float assembly(float x) {
  asm("" : "+x"(x));
  return x;
}
inline float lambda(float x) {
  const auto next = [](float y) { return y + 1; };
  return next(x);
}
inline float pointer_to_function(float x) {
  float (*f)(float) = half;
  return f(x);
}
union Pun {
  float f;
  unsigned u;
};
inline float puns(float x) {
  Pun pun;
  pun.f = x;
  return static_cast<float>(pun.u);
}
inline float casts(float x) {
  return static_cast<float>(*reinterpret_cast<unsigned*>(&x));
}
inline void set(float& x) {
  x = 1;
}
inline float by_reference(float x) {
  set(x);
  return x;
}
inline float local_reference(float x) {
  float& y = x;
  y = 2;
  return x;
}
inline float volatile_variable(float x) {
  volatile float y = x;
  return y;
}
inline float no_body(float x);
inline float library(float x) {
  return std::erf(x);
}
inline float order(float x) {
  int i = 0;
  const float t[2] = {x, 2};
  return t[i++] + t[i];
}
inline float sign_of_nan(float x) {
  return std::copysign(1.0f, x);
}
inline float copies_bytes(float x) {
  unsigned u;
  __builtin_memcpy(&u, &x, sizeof u);
  return static_cast<float>(u);
}
inline float by_length(float x) {
  const int n = static_cast<int>(x);
  float t[n];
  t[0] = x;
  return t[0];
}
inline float unreachable(float x) {
  if (x > 0) return x;
  __builtin_unreachable();
}
inline float through_macro(float x) {
#define HIDDEN_STATE counter++
  HIDDEN_STATE;
  return x;
}

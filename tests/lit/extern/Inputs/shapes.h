// Functions that do not match their declarations in signatures.cinch.
#pragma once

inline float takes_double(double x) {
  return static_cast<float>(x);
}
inline int two(float x, float y) {
  return x < y;
}
inline float overloaded(float x) {
  return x;
}
inline double overloaded(double x) {
  return x * 2;
}
inline float pointer(const float* x) {
  return *x;
}

namespace a {
inline float same(float x) {
  return x;
}
}  // namespace a
namespace b {
inline float same(float x) {
  return x;
}
namespace {
inline float same(double x) {
  return static_cast<float>(x);
}
}  // namespace
}  // namespace b

template <class T>
T larger(T x, T y) {
  return x < y ? y : x;
}
template <class To, class From>
To made_of(From x) {
  return static_cast<To>(x);
}
template <class T>
float refused(T x) {
  static T last;
  return static_cast<float>(last = x);
}

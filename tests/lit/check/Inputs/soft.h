#pragma once
inline float soft(float x, float y) {
  return x > y ? x - y : x < -y ? x + y : 0;
}

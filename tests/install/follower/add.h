inline float add(float x) {
  return x + 1;
}

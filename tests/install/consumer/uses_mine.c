#include <mine.h>
#include <stdio.h>

int main(void) {
  printf("%d\n", mine_num_bytes());
  return 0;
}

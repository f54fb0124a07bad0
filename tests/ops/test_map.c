#include "support/oracle.h"
int main(void) { return 0; }

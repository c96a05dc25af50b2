// Names of every kind in a table of symbols; the C library is linked and not defined here.
#include <stdlib.h>
#include <string.h>

int a_number = 3;
static void of_this_file(void* out, void** in) { memcpy(out, in[0], 8); }
__attribute__((visibility("hidden"))) void hidden(void* out, void** in) { of_this_file(out, in); }
__attribute__((weak)) void weak(void* out, void** in) { hidden(out, in); }
void copied(void* out, void** in) { hidden(out, in); }
void started(void) { system("true"); }

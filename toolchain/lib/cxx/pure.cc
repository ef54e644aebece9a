// What stands in a virtual table where there is no function.
#include <postern/extension.h>

extern "C" {
void __cxa_pure_virtual() { __postern_abort("a pure virtual function was called"); }
void __cxa_deleted_virtual() { __postern_abort("a deleted virtual function was called"); }
}

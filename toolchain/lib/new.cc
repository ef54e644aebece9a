// operator new and delete on the domain's heap, and what the compiler calls for C++ without exceptions.
#include <postern/extension.h>

typedef decltype(sizeof 0) size_t;
namespace std {
enum class align_val_t : size_t {};
struct nothrow_t;
}
extern "C" {
void *malloc(size_t);
void free(void *);
void *aligned_alloc(size_t, size_t);
}

#define PX __attribute__((weak))

static void *some(void *pointer)
{
    if (!pointer)
        __postern_abort("operator new: out of memory");
    return pointer;
}

PX void *operator new(size_t n) { return some(malloc(n)); }
PX void *operator new[](size_t n) { return some(malloc(n)); }
PX void *operator new(size_t n, const std::nothrow_t &) noexcept { return malloc(n); }
PX void *operator new[](size_t n, const std::nothrow_t &) noexcept { return malloc(n); }
PX void *operator new(size_t n, std::align_val_t a) { return some(aligned_alloc((size_t)a, n)); }
PX void *operator new[](size_t n, std::align_val_t a) { return some(aligned_alloc((size_t)a, n)); }
PX void operator delete(void *p) noexcept { free(p); }
PX void operator delete[](void *p) noexcept { free(p); }
PX void operator delete(void *p, size_t) noexcept { free(p); }
PX void operator delete[](void *p, size_t) noexcept { free(p); }
PX void operator delete(void *p, std::align_val_t) noexcept { free(p); }
PX void operator delete[](void *p, std::align_val_t) noexcept { free(p); }
PX void operator delete(void *p, size_t, std::align_val_t) noexcept { free(p); }
PX void operator delete[](void *p, size_t, std::align_val_t) noexcept { free(p); }

extern "C" PX void __cxa_pure_virtual() { __postern_abort("a pure virtual function was called"); }

// Destructors of thread-local variables. An extension does not see its threads end, so they run where those of other variables
// do: when a program exits.
extern "C" {
int __cxa_atexit(void (*)(void *), void *, void *);
int __cxa_thread_atexit(void (*destructor)(void *), void *object, void *image) { return __cxa_atexit(destructor, object, image); }
}

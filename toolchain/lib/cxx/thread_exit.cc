// Destructors of thread-local variables: at the end of threads that the program started. Of others, the host's, the extension
// does not see the end, so there they run where those of other variables do: when a program exits.
extern "C" {
int __cxa_atexit(void (*)(void *), void *, void *);
__attribute__((weak)) int __postern_thread_atexit(void (*destructor)(void *), void *object);
int __cxa_thread_atexit(void (*destructor)(void *), void *object, void *image)
{
    if (__postern_thread_atexit && __postern_thread_atexit(destructor, object))
        return 0;
    return __cxa_atexit(destructor, object, image);
}
}

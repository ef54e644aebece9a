/* What destructors of static objects are registered with where no C library is linked, so that
 * nothing ever exits. */
#define PX __attribute__((weak, visibility("hidden")))

PX void *__dso_handle;
PX int __cxa_atexit(void (*function)(void *), void *object, void *image)
{
    (void)function, (void)object, (void)image;
    return 0;
}

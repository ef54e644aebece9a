/* Static constructors, linked where there are any. The runtime calls this once, before anything
 * else of the domain. */
typedef void constructor(void);
extern constructor *const __postern_init_start[], *const __postern_init_end[];

__attribute__((visibility("default"), used)) void __postern_init(void)
{
    for (constructor *const *each = __postern_init_start; each < __postern_init_end; each++)
        (*each)();
}

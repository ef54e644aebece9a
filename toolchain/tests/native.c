/* Runs `run(seed)` of a shared object and prints the result. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : 0;
    unsigned long (*run)(unsigned long) = library ? (unsigned long (*)(unsigned long))dlsym(library, "run") : 0;
    if (!run) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("%lu\n", run(strtoul(argv[2], 0, 0)));
    return 0;
}

/* How a program begins: the host has laid out argv and, right behind it, the environment. Linked
 * where there is a main. */
#include <stdlib.h>
#include <unistd.h>

extern int main(int, char **, char **);

__attribute__((visibility("default"))) int __postern_main(int count, char **arguments)
{
    environ = arguments + count + 1;
    exit(main(count, arguments, environ));
}

#include <stdio.h>
int main(int argc, char **argv)
{
    printf("hello %d %s %s %.3f\n", argc, argv[1], argv[2], 1.5);
    return 3;
}

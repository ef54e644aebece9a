#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <errno.h>

static int sign(int x) { return (x > 0) - (x < 0); }

int main(void)
{
    for (int c = -1; c < 256; c++)
        printf("%d:%d%d%d%d%d%d%d%d%d%d%d%d %d %d\n", c, !!isalnum(c), !!isalpha(c), !!isblank(c), !!iscntrl(c), !!isdigit(c), !!isgraph(c),
               !!islower(c), !!isprint(c), !!ispunct(c), !!isspace(c), !!isupper(c), !!isxdigit(c), tolower(c), toupper(c));
    const char *words[] = { "", "a", "b", "ab", "abc", "abd", "ABC", "zebra", "a longer string with words", "a longer string with wordz" };
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++) {
            const char *a = words[i], *b = words[j];
            printf("%d %d %d %d %d %zu %zu %s %s\n", sign(strcmp(a, b)), sign(strncmp(a, b, 3)), sign(strcasecmp(a, b)), sign(strcoll(a, b)),
                   sign(memcmp(a, b, strlen(a) < strlen(b) ? strlen(a) : strlen(b))), strspn(a, b), strcspn(a, b),
                   strstr(a, b) ? strstr(a, b) : "(none)", strpbrk(a, b) ? strpbrk(a, b) : "(none)");
        }
    char buffer[64] = "start";
    strcat(buffer, " middle");
    strncat(buffer, " end that is cut", 4);
    puts(buffer);
    printf("%s %s %s\n", strchr(buffer, 'm'), strrchr(buffer, 'e'), (char *)memchr(buffer, 'd', 20));
    strncpy(buffer, "xy", 6);
    printf("%.10s|%s\n", buffer, buffer + 7);
    char list[] = "a,b;;c, d";
    for (char *p = strtok(list, ",; "); p; p = strtok(0, ",; "))
        printf("<%s>", p);
    char list2[] = "k=v&x=&y", *rest = list2, *part;
    while ((part = strsep(&rest, "&")))
        printf("{%s}", part);
    putchar('\n');
    char *copy = strdup("copied"), *part2 = strndup("copied", 3);
    printf("%s %s %zu\n", copy, part2, strnlen("abcdef", 4));
    free(copy), free(part2);
    memmove(buffer + 2, "0123456789", 10);
    memmove(buffer + 3, buffer + 2, 8);
    printf("%.12s\n", buffer);
    for (int e = 0; e < 134; e++)
        printf("%d %s\n", e, strerror(e));
    printf("%d %d %d %d %d %d %d\n", EPERM, ENOENT, EDEADLK, ENAMETOOLONG, EILSEQ, EOVERFLOW, ENOTSUP);
    char transformed[20];
    printf("%zu %s\n", strxfrm(transformed, "plain", 20), transformed);
    return 0;
}

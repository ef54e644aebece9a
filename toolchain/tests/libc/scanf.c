#include <stdio.h>
#include <string.h>
#include <wchar.h>

int main(void)
{
    int a, b, c, n;
    unsigned u;
    long l;
    long long ll;
    float f;
    double d;
    long double ld;
    char s[40], t[40], ch, three[4] = "";
    printf("%d: ", sscanf("12 -34 0x1f", "%d %d %i", &a, &b, &c));
    printf("%d %d %d\n", a, b, c);
    printf("%d: ", sscanf("017 0777 ff", "%i %o %x", &a, &u, &c));
    printf("%d %u %d\n", a, u, c);
    printf("%d: ", sscanf("1.5 -2.25e3 3.125", "%f %lf %Lf", &f, &d, &ld));
    printf("%g %g %Lg\n", f, d, ld);
    printf("%d: ", sscanf("hello world!x", "%s %[a-z]%c", s, t, &ch));
    printf("%s %s %c\n", s, t, ch);
    printf("%d: ", sscanf("abc,def", "%[^,],%3c%n", s, three, &n));
    printf("%s %.3s %d\n", s, three, n);
    printf("%d\n", sscanf("", "%d", &a));
    printf("%d\n", sscanf("x", "%d", &a));
    n = sscanf("9223372036854775807 -9223372036854775808", "%ld %lld", &l, &ll);
    printf("%d %ld %lld\n", n, l, ll);
    printf("%d ", sscanf("12345678", "%3d%2d%*d", &a, &b));
    printf("%d %d\n", a, b);
    signed char hh;
    short h;
    printf("%d ", sscanf("100 200", "%hhd %hd", &hh, &h));
    printf("%d %d\n", hh, h);
    printf("%d ", sscanf("inf nan", "%lf %f", &d, &f));
    printf("%f %f\n", d, f);
    /* From the standard input. */
    int sum = 0, count = 0;
    while (scanf("%d", &a) == 1)
        sum += a, count++;
    printf("%d numbers, sum %d\n", count, sum);
    printf("rest: %d %s\n", scanf("%39s", s), s);
    ch = (char)getchar();
    printf("newline %d\n", ch == '\n');
    while (fgets(s, sizeof s, stdin))
        printf("line of %zu: %s", strlen(s), s);
    printf("eof %d error %d\n", feof(stdin) != 0, ferror(stdin) != 0);
    return 0;
}

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

int main(void)
{
    printf("%s\n", setlocale(LC_ALL, 0));
    struct lconv *conventions = localeconv();
    printf("[%s] [%s]\n", conventions->decimal_point, conventions->thousands_sep);
    printf("%d\n", setlocale(LC_ALL, "nonsense") == 0);
    printf("%d\n", setlocale(LC_ALL, "C.UTF-8") != 0);
    const char *text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    wchar_t wide[20];
    size_t n = mbstowcs(wide, text, 20);
    printf("%zu:", n);
    for (size_t i = 0; i < n; i++)
        printf(" %lx", (long)wide[i]);
    char back[40];
    size_t length = wcstombs(back, wide, sizeof back);
    printf("\n%zu %d\n", length, strcmp(back, text));
    mbstate_t state;
    memset(&state, 0, sizeof state);
    const char *p = text;
    wchar_t c;
    size_t used;
    while ((used = mbrtowc(&c, p, 4, &state)) != 0 && used != (size_t)-1 && used != (size_t)-2) {
        printf("%zu %lx\n", used, (long)c);
        p += used;
    }
    memset(&state, 0, sizeof state);
    printf("%d %d\n", mbrtowc(&c, "\xc3", 1, &state) == (size_t)-2, mbrtowc(&c, "\x28", 1, &state) == (size_t)-1);
    printf("%zu %d %d %d\n", wcslen(L"four"), wcscmp(L"a", L"b") < 0, wcsncmp(L"abc", L"abd", 2), wcschr(L"abc", L'c') != 0);
    wcscpy(wide, L"copy");
    wcscat(wide, L"cat");
    printf("%ls %ld %f\n", wide, wcstol(L"-42x", 0, 10), wcstod(L"2.5", 0));
    swprintf(wide, 20, L"%d-%ls-%s", 7, L"w", "n");
    printf("%ls\n", wide);
    int a;
    wchar_t word[10];
    printf("%d", swscanf(L"12 word", L"%d %ls", &a, word));
    printf(" %d %ls\n", a, word);
    printf("%d %d %d %lc\n", !!iswalpha(L'x'), !!iswdigit(L'5'), !!iswspace(L' '), towupper(L'q'));
    return 0;
}

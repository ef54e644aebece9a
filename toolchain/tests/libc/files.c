/* Streams, files and folders below the working folder. Prints what must be the same wherever that folder is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *path)
{
    DIR *folder = opendir(path);
    char *names[32];
    size_t count = 0;
    if (!folder) {
        printf("%s: errno %d\n", path, errno);
        return;
    }
    for (struct dirent *each; (each = readdir(folder)) && count < 32;)
        names[count++] = strdup(each->d_name);
    closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    printf("%s:", path);
    for (size_t i = 0; i < count; i++) {
        printf(" %s", names[i]);
        free(names[i]);
    }
    printf("\n");
}

static void size(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0)
        printf("%s: %ld bytes, %s\n", path, (long)about.st_size, S_ISDIR(about.st_mode) ? "folder" : S_ISREG(about.st_mode) ? "file" : "other");
    else
        printf("%s: errno %d, %s\n", path, errno, strerror(errno));
}

int main(void)
{
    char line[256];
    FILE *file = fopen("none", "r");
    printf("none: %s, errno %d\n", file ? "opened" : "not opened", errno);

    file = fopen("poem", "w+");
    for (int i = 0; i < 1000; i++)
        fprintf(file, "line %d of %s\n", i, "many");
    printf("at %ld\n", ftell(file));
    fseek(file, 5000, SEEK_SET);
    printf("%s", fgets(line, sizeof line, file));
    printf("%s", fgets(line, sizeof line, file));
    rewind(file);
    fputs("LINE", file);
    fseek(file, -10, SEEK_END);
    size_t got = fread(line, 1, sizeof line, file);
    printf("%zu %.*s eof %d error %d\n", got, (int)got, line, !!feof(file), !!ferror(file));
    printf("close %d\n", fclose(file));
    file = fopen("poem", "a");
    fputs("the end\n", file);
    fclose(file);
    file = fopen("poem", "r");
    printf("first %s", fgets(line, sizeof line, file));
    int lines = 0;
    while (fgets(line, sizeof line, file))
        lines++;
    printf("%d more, last %s", lines, line);
    printf("write to it %d\n", fputs("x", file) == EOF || fflush(file) == EOF);
    fclose(file);
    size("poem");

    printf("mkdir %d\n", mkdir("folder", 0755));
    printf("mkdir %d\n", mkdir("folder", 0755) ? errno : 0);
    printf("rename %d\n", rename("poem", "folder/verse"));
    size("poem");
    size("folder/verse");
    size("folder");
    list(".");
    list("folder");
    list("nowhere");
    printf("rmdir %d %d\n", rmdir("folder"), errno == ENOTEMPTY);
    int number = open("folder/verse", O_RDWR);
    printf("truncate %d, seek %ld\n", ftruncate(number, 100), (long)lseek(number, 0, SEEK_END));
    printf("pread %ld %.4s\n", (long)pread(number, line, 4, 0), line);
    printf("exclusive %d %d\n", open("folder/verse", O_CREAT | O_EXCL | O_WRONLY, 0644), errno == EEXIST);
    printf("close %d\n", close(number));
    printf("close %d %d\n", close(number), errno);
    size("folder/verse");
    printf("access %d %d\n", access("folder/verse", R_OK), access("nothing", F_OK));
    printf("unlink %d\n", unlink("folder/verse"));
    printf("rmdir %d\n", rmdir("folder"));
    list(".");

    FILE *temporary = fopen("t", "wb+");
    setvbuf(temporary, NULL, _IOFBF, 16);
    for (int i = 0; i < 256; i++)
        putc(i, temporary);
    fseek(temporary, 0, SEEK_SET);
    unsigned sum = 0;
    for (int c; (c = getc(temporary)) != EOF;)
        sum = sum * 31 + (unsigned)c;
    printf("sum %u, unget %d %d\n", sum, ungetc('q', temporary), getc(temporary));
    fclose(temporary);
    printf("remove %d\n", remove("t"));
    return fclose(stderr) == 0 ? 3 : 4;
}

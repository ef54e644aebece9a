/* What the programs work on: text as people write it and records as programs do, the same in every build. */
#ifndef CORPUS_H
#define CORPUS_H

#include <stddef.h>

enum { CORPUS = 1 << 18 };

static unsigned long long corpus_state;

static unsigned corpus_random(void)
{
    corpus_state = corpus_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(corpus_state >> 33);
}

/* Words of a made-up language, the frequent ones short, in sentences and paragraphs; now and then a phrase comes again. */
static void corpus_text(char *to, size_t n)
{
    static const char *const syllables[] = {"ta", "ren", "o", "mi", "sal", "ber", "e", "lin", "dor", "a", "ka", "ven", "ist", "ul", "pre", "an",
        "ing", "co", "ter", "s"};
    static char words[4096][16];
    static unsigned char length[4096];
    corpus_state = 42;
    for (unsigned w = 0; w < 4096; w++) {
        unsigned k = 0, parts = 1 + (w > 8) + (w > 200) + corpus_random() % 2;
        while (parts--)
            for (const char *s = syllables[corpus_random() % 20]; *s && k < 15; s++)
                words[w][k++] = *s;
        length[w] = (unsigned char)k;
    }
    size_t at = 0;
    unsigned in_sentence = 0, in_line = 0;
    while (at < n) {
        if (at > 4096 && corpus_random() % 64 == 0) {
            size_t from = at - 64 - corpus_random() % 3900, much = 20 + corpus_random() % 60;
            while (much-- && at < n)
                to[at++] = to[from++];
            continue;
        }
        unsigned r = corpus_random() % 4096, w = corpus_random() % (1 + r * (r / 16 + 1) / 256 % 4096);
        for (unsigned k = 0; k < length[w] && at < n; k++)
            to[at++] = (char)(words[w][k] - (k == 0 && in_sentence == 0 ? 32 : 0));
        in_line += length[w] + 1u;
        in_sentence++;
        if (in_sentence > 6 && corpus_random() % 8 == 0) {
            in_sentence = 0;
            if (at < n)
                to[at++] = '.';
        } else if (corpus_random() % 12 == 0 && at < n) {
            to[at++] = ',';
        }
        if (at < n)
            to[at++] = in_line > 90 ? '\n' : ' ';
        if (in_line > 90)
            in_line = 0;
    }
}

/* Records of 32 bytes: a serial number, times that grow, measurements that wander, flags, references and a little noise. */
static void corpus_records(char *to, size_t n)
{
    corpus_state = 1234;
    unsigned time = 1700000000, level = 5000;
    for (size_t at = 0; at + 32 <= n; at += 32) {
        time += corpus_random() % 5;
        level += corpus_random() % 65 - 32;
        unsigned field[8] = {(unsigned)(at / 32), time, level, corpus_random() % 4 ? 0 : 1u << corpus_random() % 8, (unsigned)at - corpus_random() % 2048 * 32,
            level * 3 + 17, corpus_random() % 16 ? 0x3f800000 : corpus_random(), corpus_random() & 0xff};
        for (unsigned k = 0; k < 32; k++)
            to[at + k] = (char)(field[k / 4] >> k % 4 * 8);
    }
}

/* The corpus: the first half text, the second records. */
static inline char *corpus(void)
{
    static char all[CORPUS];
    static char made;
    if (!made) {
        corpus_text(all, CORPUS / 2);
        corpus_records(all + CORPUS / 2, CORPUS / 2);
        made = 1;
    }
    return all;
}

static inline unsigned long long checksum(unsigned long long sum, const void *from, size_t n)
{
    const unsigned char *p = from;
    for (size_t k = 0; k < n; k += 1 + n / 4096)
        sum = (sum ^ p[k]) * 0x100000001b3u;
    return sum ^ n;
}

#endif

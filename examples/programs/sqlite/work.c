#include "corpus.h"
#include <string.h>
#include "sqlite3.h"
static unsigned long long sum;
static int row(void *u, int n, char **values, char **names)
{
    (void)u; (void)names;
    for (int k = 0; k < n; k++)
        sum = checksum(sum, values[k] ? values[k] : "", values[k] ? strlen(values[k]) : 0);
    return 0;
}
static int run(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, row, 0, 0); }
unsigned long long work(void)
{
    static const char name[][8] = {"amber", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo"};
    sqlite3 *db;
    sqlite3_stmt *insert;
    sum = 0;
    corpus_state = 7;
    if (sqlite3_open(":memory:", &db) || run(db, "create table t(id integer primary key, k int, name text, v real);"
            "create table u(k int, label text); create index t_k on t(k); begin"))
        return 1;
    if (sqlite3_prepare_v2(db, "insert into t(k, name, v) values(?, ? || '-' || ?, ?)", -1, &insert, 0))
        return 2;
    for (int i = 0; i < 8000; i++) {
        sqlite3_bind_int(insert, 1, (int)(corpus_random() % 1000));
        sqlite3_bind_text(insert, 2, name[corpus_random() % 7], -1, SQLITE_STATIC);
        sqlite3_bind_int(insert, 3, i);
        sqlite3_bind_double(insert, 4, (double)(corpus_random() % 4096) / 8);
        if (sqlite3_step(insert) != SQLITE_DONE)
            return 3;
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    int bad = run(db, "insert into u select distinct k, 'label ' || k from t order by k desc; commit;"
        "select count(*), sum(k), avg(v) from t where name like '%dar-1%';"
        "select u.label, count(*), max(t.v) from t join u on t.k = u.k where t.v > 200 group by u.label order by 2 desc, 1 limit 50;"
        "update t set v = v * 2, name = upper(name) where k % 7 = 3;"
        "select substr(name, 1, 3), count(*), min(v), max(length(name)) from t group by 1 order by 1;"
        "select a.id from t a, t b where a.k = b.k and a.id < b.id and a.v = b.v order by a.id limit 100;"
        "delete from t where k between 100 and 300;"
        "select count(*), sum(length(name)) from t; select name from t order by name, v limit 40 offset 2000");
    sqlite3_close(db);
    return bad ? 4 : sum;
}

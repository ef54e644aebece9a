# SQLite's shell, on files: the host runs this with a program of the same sources. FILES is where
# library.sql lies; all else is in the folder that this runs in.
sqlite3 library.db <"$FILES/library.sql"
sqlite3 library.db .tables '.schema book' 'select count(*) from book'
sqlite3 -box library.db 'select id, name from author order by id'
sqlite3 -json library.db 'select id, title, price from book order by id limit 2'
sqlite3 -csv -header library.db 'select id, title, price from book order by id limit 3' | tee table.csv
sqlite3 library.db '.mode csv' '.import table.csv imported' 'select count(*), typeof(price) from imported'
sqlite3 library.db .dump | sqlite3 copy.db
sqlite3 copy.db .dump >copy.sql; sqlite3 library.db .dump | cmp - copy.sql && echo the same dump
sqlite3 library.db '.backup saved.db'; sqlite3 saved.db 'pragma integrity_check'
sqlite3 library.db 'attach "copy.db" as other; select count(*) from other.book join book using (id)'; echo $?
sqlite3 library.db "attach 'copy.db' as other; select count(*) from other.book join book using (id)"; echo $?
sqlite3 library.db 'begin; delete from book where id % 2; select count(*) from book; rollback; select count(*) from book'
sqlite3 library.db 'pragma journal_mode = persist; update book set year = year + 1 where id < 2000; update book set year = year - 1 where id < 2000'
ls *.db*
sqlite3 library.db 'pragma journal_mode = delete; delete from book where id = 20006; vacuum; pragma integrity_check'
ls library.db*
sqlite3 library.db '.timer on' 'select 1' | grep -c 'Run Time: real'

echo a file that is none
seq 2000 >bad.db
sqlite3 bad.db 'select * from sqlite_schema' 2>&1; echo $?
sqlite3 /nowhere/x.db 'create table t(x)' >nothing 2>&1; echo $?
sqlite3 new.db 'select * from t' >nothing 2>&1; echo $?

echo two that write
sqlite3 busy.db 'create table t(x)'
{
	echo '.timeout 60000'
	echo 'begin immediate; insert into t values (1);'
	echo '.once begun'
	echo 'select 1;'
	until [ -e go ]; do sleep 0.05; done
	echo 'commit;'
} | sqlite3 busy.db &
until [ -s begun ]; do sleep 0.05; done
sqlite3 busy.db 'insert into t values (2)' 2>&1; echo $?
sqlite3 busy.db 'select count(*) from t'
sqlite3 -cmd '.timeout 60000' busy.db 'insert into t values (3)' &
touch go
wait
sqlite3 busy.db 'select x from t order by x'

echo many that write
for writer in 1 2 3; do
	for round in 1 2 3 4 5 6 7 8; do
		sqlite3 -cmd '.timeout 60000' busy.db "insert into t values ($writer * 100 + $round)"
	done &
done
wait
sqlite3 busy.db 'select count(*), sum(x) from t; pragma integrity_check'

echo one that dies with half of its pages written
sqlite3 crash.db "create table t(x integer primary key, y text); create index i on t(y);
	with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000)
	insert into t select x, hex(x * 77) || 'some text to fill pages' from n"
cp crash.db before.db
{
	sqlite3 crash.db "pragma cache_size = 10; begin; update t set y = x || y; delete from t where x % 3 = 0" \
		'.shell kill -9 $PPID'
} 2>/dev/null
[ -s crash.db-journal ] && echo there is a journal
cmp -s crash.db before.db || echo pages were written
sqlite3 crash.db 'pragma integrity_check; select count(*), sum(length(y)), min(y), max(y) from t'
[ -s crash.db-journal ] || echo the journal is gone
cmp -s crash.db before.db && echo the file is as before

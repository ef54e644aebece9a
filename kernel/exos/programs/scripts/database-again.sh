# What database.sh has left, after another boot.
for name in library copy saved busy crash; do
	echo $name "$(sqlite3 $name.db 'pragma integrity_check')"
done
sqlite3 library.db 'select count(*), sum(year), max(title) from book'
sqlite3 copy.db .dump | cmp - copy.sql && echo the same dump
sqlite3 busy.db 'select count(*), sum(x) from t'
sqlite3 crash.db 'select y from t where x in (1, 1500, 3000)'
ls

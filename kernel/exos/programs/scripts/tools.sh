# Tools beside those of GNU, whose output is the same.
seq 3; seq 2 5; seq 10 -3 0; seq -s , 4
seq 100 | wc; seq 100 | wc -l; seq 100 | wc -c; seq 100 | wc -w
seq 20 | head -n 3; seq 20 | head -c 7; seq 20 | tail -n 3; seq 20 | tail -n +18; seq 20 | tail -c 6; seq 12 | tail
seq 12 | sort; seq 12 | sort -n -r; printf 'b\na\nc\na\n' | sort -u; printf 'x 3\ny 1\nz 2\n' | sort -k 2; printf 'a:9\nb:10\n' | sort -n -t : -k 2
printf 'a\na\nb\nc\nc\n' | uniq; printf 'a\na\nb\nc\nc\n' | uniq -c; printf 'a\na\nb\n' | uniq -d; printf 'a\na\nb\n' | uniq -u
seq 30 | grep 1; seq 30 | grep -v 1 | wc -l; seq 30 | grep -c 2; seq 30 | grep -n '^2.$'; printf 'Abc\nabc\n' | grep -i ABC
printf 'aab\nab\nb\n' | grep 'a*b'; printf 'x1y22\n' | grep -o '[0-9][0-9]*'; printf 'ab\ncd\n' | grep -E 'a|c'; printf 'a.b\naxb\n' | grep -F a.b
printf 'foofoo\nfoobar\n' | grep '\(foo\)\1'; echo hay | grep needle; echo $?; echo needle | grep -q needle; echo $?
printf '%s-%d-%x|' a 10 255 b 20 16; printf '\n%5s|%-5s|%05d|%c\n' ab cd 42 xyz; printf '%b' 'tab\there\n'; printf '%%\n'; printf '%.2f %e\n' 3.14159 1000
printf 'one\ntwo\n' | cat -n; printf 'a\nb\n' | cat - | cat
printf 'Hello, World! 0123456789' | xxd
date -u -d @0 '+%Y-%m-%d %H:%M:%S'; date -u -d @1000000000 +%s; date -u -d @1000000000
env -i B=2 C=3 | sort
echo -n no newline; echo; echo
true; echo $?; false; echo $?
seq 5000 | tee | wc -l
seq 20000 | sort -n | tail -n 1
kill -0 $$; echo $?

# The language of the shell: the host runs this by its own, and the same has to come out.
echo hello "a b" 'c $x'
x=5; echo $x ${x} "${x}y" ${y:-def} ${y-"a b"} ${#x}
for i in 1 2 3; do echo $i; done
i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo n$i; done
f() { echo "f: $1 $#"; return 3; }
f a b; echo $?
cat <<E
doc $x `echo sub`
E
cat <<'E'
raw $x
E
echo $(echo a; echo b)
if false; then echo no; elif true; then echo elif; else echo else; fi
case abc in x) echo x;; a*) echo star;; esac
(cd /; echo sub; exit 4); echo $?
set -- a "b c" d; for a; do echo "[$a]"; done; for a in "$@"; do echo "<$a>"; done; for a in $*; do echo "($a)"; done
echo "$*" "$@" | cat | wc -l
p=/a/b/c.tar.gz; echo ${p##*/} ${p#*/} ${p%.*} ${p%%.*}
true && echo yes || echo no
false && echo yes || echo no
! true; echo $?
echo a\ b 'x'"y"z
IFS=:; v=a:b::c; for w in $v; do echo "{$w}"; done
unset IFS
read a b <<E
first second third
E
echo "$a|$b"
echo $((1+2*3)) $(( (1+2)*3 )) $((10/3)) $((10%3)) $((1<<4)) $((x>3))
for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done
A=1 sh -c 'echo $A'
echo "${A-unset}"
eval 'echo ev $x'
(set -e; false || true; echo kept; false; echo no); echo "e $?"
f() { false; echo in f; }
(set -e; if f; then echo t; fi; f; echo no); echo $?
for i in a b; do
  for j in 1 2 3; do
    if [ "$j" = 2 ]; then continue 2; fi
    echo "$i$j"
  done
done
while :; do while :; do break 2; done; done; echo out
echo 'single' "dou\"ble" \$x "\$x" "a\\$"
x='a   b'; echo $x; echo "$x"
y='*'; echo "$y" '*' \*
set --; echo "none: $# [$*]" "$@" end
set -- "$@" x; echo $#
echo "${u:=assigned}" $u
echo ${u:+alt} ${nope:+alt} end
echo "nested $(echo "in $(echo deep)")"
case "a b" in "a b") echo quoted;; esac
case file.c in *.[ch]) echo csource;; *) echo other;; esac
case x in (x|y) echo paren;; esac
n=0; until [ $n -ge 3 ]; do n=$((n + 1)); done; echo $n
cat <<-X
	tabs gone
		twice
	X
cat <<A; cat <<B
first
A
second $n
B
if ! false; then echo notfalse; fi
echo a;echo b&&echo c||echo d
echo one two three | { read a b; echo "$b $a"; }
echo one | while read l; do echo "got $l"; done
f() { local_=1; if [ $1 -gt 0 ]; then echo $1; f $(($1-1)); fi; }
f 3
r() { return 7; echo no; }; r; echo $?
x=outer; g() { x=inner; }; g; echo $x
V=temp true; echo "[$V]"
V=1; V=2 sh -c 'echo $V'; echo $V
export E=exported; sh -c 'echo $E'; unset E; sh -c 'echo "[$E]"'
(exit 3); echo $?
sh -c 'exit 5' || echo "five $?"
echo $(exit 9) $?; w=$(exit 9); echo $?
[ 1 -lt 2 -a 2 -lt 3 ] && echo and; [ ! -e /nope ] && echo notthere
printf '%s\n' "$@"
: ${x?}; shift; echo $#
echo "a
b"
echo a\
b
IFS=,; set -- $(echo 1,2,3); echo $2; unset IFS
sh -c 'echo $0 $1' name arg
if true; then :; fi; echo $?
if false; then :; fi; echo $?
while false; do :; done; echo $?
f() { echo "$# $*"; }; f "a b" c ''
f "$@"; f $nope; f "$nope"
echo ${x%r}-${x#o}-${x%%t*}
A=x B=$A; echo "[$B]"
echo $((0x10)) $((010)) $((-7/2)) $((-7%3)) $((!0)) $((~0)) $((5&3|8))

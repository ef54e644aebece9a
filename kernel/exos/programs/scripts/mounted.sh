# A folder that others have, too: the same on any system. $OWN is one that is nobody else's.
mkdir tools
cd tools
echo one > a
echo two >> a
cat a
wc -c a
cat < a > b
cmp a b && echo same
mkdir d d/e
cp a d/c
mv b d/e/f
cat d/e/f d/c
ls d d/e
ls
cat nothing 2>/dev/null || echo nothing
rmdir d 2>/dev/null || echo full
mkdir d 2>/dev/null || echo there
mv d/c d/g
ls d
cp d/g d/e/f
rm -r d
ls
seq 150000 > "$OWN/numbers"
cp "$OWN/numbers" numbers
cmp "$OWN/numbers" numbers && echo all
cp numbers "$OWN/back"
cmp numbers "$OWN/back" && echo back
rm "$OWN/numbers" "$OWN/back"
grep 77777 numbers
grep -c 99 numbers
tail -n 2 numbers
wc -l numbers
for n in 1 2 3 4 5 6 7 8; do echo "line $n" >> lines; done
cat lines
echo short > lines
cat lines
{ echo child; echo again; } > y
cat y
ln numbers hard
mv numbers more
tail -n 1 hard
ln -s hard soft
head -n 2 soft
rm soft
exec 3< lines
rm lines
cat <&3
exec 3<&-
ls
touch new
mkdir "a name of several words"
echo deep > "a name of several words/deep"
cat "a name of several words/deep"
ls

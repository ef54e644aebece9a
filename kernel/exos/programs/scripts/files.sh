# Files that are made, changed and taken away: the same here and elsewhere.
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
cd d/e
cat ../c f
cd ../..
rm a
cat a 2>/dev/null || echo gone
rmdir d 2>/dev/null || echo full
mv d/c d/g
ls d
rm -r d
ls
echo long > x
echo s > x
cat x
( echo child; echo again ) > y
cat y
seq 1 5000 > numbers
tail -n 2 numbers
cp numbers more
cmp numbers more && echo same
wc -l more
grep 499 more | head -n 3
sort -r numbers | head -n 2
ln numbers hard
rm numbers
tail -n 1 hard
ln -s hard soft
head -n 2 soft
rm soft hard more x y
ls
mkdir -p one/two three
ln -s ../three one/link
echo there > three/file
cat one/link/../three/file
ls one/link/..
cd one/two/../../three
cat file
cd ..
rm -r one three
ls

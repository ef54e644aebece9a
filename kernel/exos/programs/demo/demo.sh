# The demonstration: what an operating system does, done by a library in each program's own space.
echo '7. Processes in a pipeline: fork, exec and pipes are functions of the library.'
echo the kernel knows nothing of this | upper
seq 1000 | cat | wc
time seq 3
echo
echo '8. Two versions of the operating system side by side: linear and inverted page tables, joined by a pipe.'
seq 20000 | cat-inverted | wc
echo
echo '9. A pager of the program itself, against one that evicts what was used longest ago.'
pager
echo
echo '10. An extension inside of a process: native code of somebody else, confined, called as a function.'
extension
echo
echo '11. Programs as nobody wants them. Each ends with a reason, and the next one runs.'
bad crash
bad divide
bad hog
bad recurse
bad corrupt
bad bomb
echo
echo '12. All are gone; the shell goes on.'
seq 3 | wc

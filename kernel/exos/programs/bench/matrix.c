/* Table 9: the product of two matrices of 150 by 150 integers, with memory that is touched for the first time before. */
#include "measure.h"

#define SIZE 150

static int left[SIZE][SIZE] ALIGNED, right[SIZE][SIZE] ALIGNED, product[SIZE][SIZE] ALIGNED;

static void fill(void)
{
	for (int row = 0; row < SIZE; row++)
		for (int column = 0; column < SIZE; column++) {
			left[row][column] = row + column;
			right[row][column] = row - column;
			product[row][column] = 0;
		}
}

__attribute__((noinline)) static void multiply(void)
{
	for (int row = 0; row < SIZE; row++)
		for (int column = 0; column < SIZE; column++) {
			int sum = 0;

			for (int k = 0; k < SIZE; k++)
				sum += left[row][k] * right[k][column];
			product[row][column] = sum;
		}
}

int main(void)
{
	uint64_t took;
	int wanted = 0;

	fill();
	LEAST(took, 3, multiply());
	for (int k = 0; k < SIZE; k++)
		wanted += left[7][k] * right[k][11];
	if (product[7][11] != wanted)
		return fprintf(stderr, "matrix: a wrong product\n"), 1;
	row("matrix", took, 1);
	return 0;
}

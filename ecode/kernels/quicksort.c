/* Quicksort with the median of three, and insertion sort for short pieces. */
enum { COUNT = 20000 };

static int numbers[COUNT];

static void sort(int *v, int low, int high)
{
	while (high - low > 12) {
		int middle = low + (high - low) / 2, i = low, j = high, pivot, t;

		if (v[middle] < v[low])
			t = v[middle], v[middle] = v[low], v[low] = t;
		if (v[high] < v[low])
			t = v[high], v[high] = v[low], v[low] = t;
		if (v[high] < v[middle])
			t = v[high], v[high] = v[middle], v[middle] = t;
		pivot = v[middle];
		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j) {
				t = v[i];
				v[i++] = v[j];
				v[j--] = t;
			}
		}
		if (j - low < high - i) {
			sort(v, low, j);
			low = i;
		} else {
			sort(v, i, high);
			high = j;
		}
	}
	for (int i = low + 1; i <= high; i++) {
		int value = v[i], j = i - 1;

		while (j >= low && v[j] > value) {
			v[j + 1] = v[j];
			j--;
		}
		v[j + 1] = value;
	}
}

long kernel(long rounds)
{
	unsigned seed = 42;
	long round, sum = 0;
	int i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < COUNT; i++) {
			seed = seed * 1664525 + 1013904223;
			numbers[i] = seed >> 4;
		}
		sort(numbers, 0, COUNT - 1);
		for (i = 1; i < COUNT; i++)
			sum += numbers[i - 1] <= numbers[i];
		sum += numbers[COUNT / 2];
	}
	return sum;
}

/* What processes.c starts. */
int main(void)
{
	return 7;
}

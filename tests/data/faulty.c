/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that the tools of `make analyze` must find, before what they say of the product counts. */
#include <stdlib.h>
#include <string.h>

char freed(const char *text);
int past_the_end(void);

char freed(const char *text)
{
	char *copy = malloc(strlen(text + 1)); /* for clang-tidy */
	if (!copy)
		return 0;
	strcpy(copy, text);
	free(copy);
	return copy[0]; /* for gcc */
}

int past_the_end(void)
{
	int two[2] = { 1, 2 };
	return two[2]; /* for cppcheck */
}

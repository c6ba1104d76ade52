/** `TESTS_UNTIL`, a time in seconds since 1970: files that have not begun by then are not run. */
export const DEADLINE = Number(process.env.TESTS_UNTIL ?? Number.POSITIVE_INFINITY) * 1_000;

/** The only test of such a file. */
export const LEFT_OUT = "not run: no time was left";

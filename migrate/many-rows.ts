/** Work under a lock takes noticeable time from this number of rows on. */
export const MANY_ROWS = 10_000;

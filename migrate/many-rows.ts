/** From this number of rows on, work under a lock takes noticeable time. */
export const MANY_ROWS = 10_000;

/** The numbered rows that were seen by the clients that wrote them, in the table, and on the channel. */
export type Seen = {
  readonly acknowledged: readonly number[];
  readonly refused: readonly number[];
  readonly unread: readonly number[];
  /** The number of times that each number is in the table. */
  readonly stored: ReadonlyMap<number, number>;
  /** The number of times that the channel has received each. */
  readonly received: ReadonlyMap<number, number>;
};

/** Returns everything that must not have happened, whatever broke, with the numbers that it happened to. */
export function faultsFound({ acknowledged, refused, unread, stored, received }: Seen): Record<string, number[]> {
  const storedNumbers = [...stored.keys()];
  const found = {
    "acknowledged and lost": acknowledged.filter((number) => !stored.has(number)),
    "refused and written": refused.filter((number) => stored.has(number)),
    "written twice": storedNumbers.filter((number) => stored.get(number)! > 1),
    "not read by who wrote it": [...unread],
    "written and not received": storedNumbers.filter((number) => !received.has(number)),
    "received and not written": [...received.keys()].filter((number) => !stored.has(number)),
    "received more often than written": storedNumbers.filter(
      (number) => (received.get(number) ?? 0) > stored.get(number)!,
    ),
  };
  return Object.fromEntries(Object.entries(found).filter(([, numbers]) => numbers.length > 0));
}

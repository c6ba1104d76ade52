/** What has happened on the links of one lane since the start. Whoever does it adds to it. */
export type Tally = {
  /** Writes to the server and what came back, whatever that was. */
  exchanges: number;
  /** Of the server, for all of them. */
  milliseconds: number;
  /** Links that were opened, and those that were lost. */
  opened: number;
  lost: number;
  /** Those who waited for a link too long, or found too many waiting. */
  turnedAway: number;
  /** Reads that were cancelled since others waited, and ran again. */
  interrupted: number;
  /** Statements that were prepared already, those that had to be, and those that were given up for others. */
  prepared: number;
  parsed: number;
  evicted: number;
};

export function makeTally(): Tally {
  return {
    exchanges: 0,
    milliseconds: 0,
    opened: 0,
    lost: 0,
    turnedAway: 0,
    interrupted: 0,
    prepared: 0,
    parsed: 0,
    evicted: 0,
  };
}

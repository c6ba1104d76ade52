/** A name that is wanted, and all the names that would come with it. */
export type Claim = {
  readonly wanted: string;
  /** Ends the name when somebody else has it. */
  readonly suffix: string;
  readonly needs: (name: string) => readonly string[];
  readonly rename: (name: string) => void;
};

/** Who comes first keeps its name; who comes second is renamed, so that nothing it needs is anybody else's. */
export function settleNames(claims: readonly Claim[], isTaken: (name: string) => boolean = () => false): void {
  const given = new Set<string>();
  const isFree = (name: string) => !given.has(name) && !isTaken(name);
  for (const { wanted, suffix, needs, rename } of claims) {
    let name = wanted;
    for (let number = 1; !needs(name).every(isFree); number += 1) {
      name = `${wanted}${suffix}${number === 1 ? "" : number}`;
    }
    if (name !== wanted) rename(name);
    for (const needed of needs(name)) given.add(needed);
  }
}

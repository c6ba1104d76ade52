import type { Catalog } from "./catalog.ts";
import type { CatalogKeeper } from "./keep.ts";

/** Resolves with whether there is a newer catalogue than the given one, which the database did not agree with. */
export type CatchUp = (outdated: Catalog) => Promise<boolean>;

export function makeCatchUp(keeper: Pick<CatalogKeeper, "current" | "reload">): CatchUp {
  /** Read again without a difference: the fault was another one, and would be so the next time. */
  const confirmed = new WeakSet<Catalog>();
  return async (outdated) => {
    if (keeper.current() !== outdated) return true;
    if (confirmed.has(outdated)) return false;
    try {
      await keeper.reload();
    } catch {
      // The keeper tells of it, and tries again.
      return false;
    }
    const isNewer = keeper.current() !== outdated;
    if (!isNewer) confirmed.add(outdated);
    return isNewer;
  };
}

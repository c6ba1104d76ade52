import type { CatalogKeeper } from "../../engine/catalog/keep.ts";
import type { Binding } from "./binding.ts";
import type { Published } from "./published.ts";
import { sightOf } from "./sight.ts";
import type { Subscriber } from "./subscriber.ts";

type Ground = { readonly catalog: Pick<CatalogKeeper, "current">; readonly published: Published };

/** Those who would wait in vain for something that they were granted when they joined, and why. */
export async function findLapsed(
  subscribers: readonly Subscriber[],
  { catalog, published }: Ground,
): Promise<ReadonlyMap<Subscriber, string>> {
  const current = catalog.current();
  const reasonFor = async ({ schema, table }: Binding, role: string): Promise<string | null> => {
    if (!(await published.has(schema, table))) return `changes of ${table ?? "any table"} are published no longer`;
    if (schema === null || table === null) return null;
    const found = current.findTable({ schema, name: table });
    return found && sightOf(current, found, role) ? null : `${table} is no longer open to you`;
  };
  // Subscribers are many, what they ask for is little: all of that is found out together.
  const reasons = new Map<string, Promise<string | null>>();
  const reasonOf = (binding: Binding, role: string): Promise<string | null> => {
    const key = JSON.stringify([binding.schema, binding.table, role]);
    const reason = reasons.get(key) ?? reasonFor(binding, role);
    reasons.set(key, reason);
    return reason;
  };
  const lapsed = new Map<Subscriber, string>();
  const examine = async (subscriber: Subscriber): Promise<void> => {
    const { bindings, caller } = subscriber;
    const found = await Promise.all(bindings.map((binding) => reasonOf(binding, caller.role)));
    const reason = found.find((each) => each !== null);
    if (reason) lapsed.set(subscriber, reason);
  };
  await Promise.all(subscribers.map(examine));
  return lapsed;
}

import { type MatchedResult, RelationResults } from "#live/matching";
import type { RowChange } from "#live/stream";
import type { ChangeAudience, SubscriberGroup } from "./audience.ts";
import type { Binding } from "./binding.ts";

/** A binding of a group, as a result that changes of rows can affect. */
type IndexedBinding = MatchedResult & { readonly group: SubscriberGroup; readonly binding: Binding };

/** Finds the groups that a change can concern by the values and ranges of their filters, as results of live queries are found. */
export class BindingIndex {
  readonly #bindings: RelationResults<IndexedBinding>;

  constructor({ table: { oid: relation }, groups }: ChangeAudience) {
    this.#bindings = new RelationResults(relation);
    for (const group of groups)
      for (const binding of group.members.flatMap(({ bindings }) => bindings)) {
        const filters = binding.filters.flatMap(({ bounds }) => (bounds ? { relation, ...bounds } : []));
        this.#bindings.add({ filters, contents: null, tableRows: null, group, binding });
      }
  }

  /** The groups with a binding that the test accepts, which is asked about those that the change can match. */
  groupsOf(change: RowChange, test: (binding: Binding) => boolean): ReadonlySet<SubscriberGroup> {
    const { results, groups } = this.#bindings.affectedBy(change);
    const found = new Set<SubscriberGroup>();
    const add = ({ group, binding }: IndexedBinding) => {
      if (!found.has(group) && test(binding)) found.add(group);
    };
    for (const each of results) add(each);
    for (const { results: ofGroup } of groups) for (const each of ofGroup.keys()) add(each);
    return found;
  }
}

import { isDeepStrictEqual } from "node:util";
import type { AwaitVisible, ReplicatedRelation } from "#live/stream";
import { type AudienceDependencies, type ChangeAudience, type GroupMember, makeFindAudience } from "./audience.ts";
import type { VisibleColumns } from "./change-payload.ts";
import { ChangeDelivery, type PendingChange } from "./delivery.ts";
import type { CheckRowVisibility } from "./row-visibility.ts";
import type { ChangeSubscriber } from "./subscriber.ts";

export type DeliveriesByRelation = ReadonlyMap<ReplicatedRelation, ChangeDelivery>;

/** Checks which of the changes each group of subscribers may see. */
export type CheckChanges = (changes: readonly PendingChange[]) => Promise<DeliveriesByRelation>;

type CheckDependencies = AudienceDependencies & {
  readonly checkVisibility: CheckRowVisibility;
  readonly awaitVisible: AwaitVisible;
};

type CheckedFeed = {
  readonly subscribers: ReadonlySet<ChangeSubscriber>;
  /** Returns the number of schema changes that the stream has reported. */
  schemaChanges(): number;
  /** Resolves when the catalogue includes these schema changes. */
  upToDate(): Promise<void>;
  history(): string;
};

/**
 * Checks the changes, and repeats the check if policies or groups of these tables have changed meanwhile. Other changes of the schema
 * do not count, because nothing would be delivered while they follow one another.
 */
export function makeCheckChanges(dependencies: CheckDependencies, feed: CheckedFeed): CheckChanges {
  const { awaitVisible, checkVisibility } = dependencies;
  const findAudience = makeFindAudience(dependencies);
  const findAudiences = async (relations: Iterable<ReplicatedRelation>) => {
    await feed.upToDate();
    const audiences = new Map<ReplicatedRelation, ChangeAudience>();
    for (const relation of relations) {
      const audience = await findAudience(feed.subscribers, relation);
      if (audience) audiences.set(relation, audience);
    }
    return audiences;
  };
  return async (changes) => {
    const byRelation = Map.groupBy(changes, ({ change }) => change.relation);
    const xids = new Set(changes.map(({ transaction }) => transaction.xid));
    for (;;) {
      const schemaChanges = feed.schemaChanges();
      const audiences = await findAudiences(byRelation.keys());
      const deliveries = new Map<ReplicatedRelation, ChangeDelivery>();
      for (const [relation, audience] of audiences) {
        deliveries.set(relation, new ChangeDelivery(byRelation.get(relation)!, audience, feed.history()));
      }
      // The wait comes before the check, because policies may read rows of other tables that the same transaction has written.
      if (deliveries.size > 0) await awaitVisible(xids);
      await Promise.all([...deliveries.values()].map((delivery) => delivery.check(checkVisibility)));
      if (schemaChanges === feed.schemaChanges()) return deliveries;
      const now = await findAudiences(byRelation.keys());
      if ([...byRelation.keys()].every((each) => isSameAudience(audiences.get(each), now.get(each)))) return deliveries;
    }
  };
}

/** True if both have the same groups, and would be checked and sent the same. */
function isSameAudience(one: ChangeAudience | undefined, other: ChangeAudience | undefined): boolean {
  if (!one || !other) return one === other;
  const { table, groups } = one;
  if (table.oid !== other.table.oid || !isDeepStrictEqual(table.columns, other.table.columns)) return false;
  if (!isDeepStrictEqual(table.primaryKey, other.table.primaryKey) || groups.length !== other.groups.length)
    return false;
  // Many members share few values.
  const compared = new Map<VisibleColumns, VisibleColumns>();
  const isSameColumns = (left: VisibleColumns, right: VisibleColumns) => {
    if (compared.get(left) !== right && !isDeepStrictEqual(left, right)) return false;
    compared.set(left, right);
    return true;
  };
  const isSameMember = (left: GroupMember, right: GroupMember | undefined) =>
    left.subscriber === right?.subscriber &&
    left.bindings.length === right.bindings.length &&
    left.bindings.every((binding, at) => binding === right.bindings[at]) &&
    isSameColumns(left.columns, right.columns);
  return groups.every((group, at) => {
    const now = other.groups[at]!;
    return (
      group.commonCondition === now.commonCondition &&
      group.members.length === now.members.length &&
      isDeepStrictEqual(group.visibility, now.visibility) &&
      group.members.every((member, index) => isSameMember(member, now.members[index]))
    );
  });
}

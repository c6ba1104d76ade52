import { toHttpError } from "#http";
import type { CommittedTransaction, ReplicatedRow, RowChange } from "#live/stream";
import { isQueryCanceled } from "#postgres/database";
import { encodeMessage } from "../protocol/messages.ts";
import { encodeSocketFrame, type Outbox } from "../protocol/outbox.ts";
import { type ChangeAudience, type GroupMember, type SubscriberGroup, splitByClaims } from "./audience.ts";
import type { Binding } from "./binding.ts";
import { BindingIndex } from "./binding-index.ts";
import { ChangePayload, type DeliveredChange, type VisibleColumns } from "./change-payload.ts";
import type { FilterEvaluator, FilterRequest, FilterResult } from "./filter-evaluation.ts";
import type { BindingFilter, CellText } from "./row-filter.ts";
import { type CheckRowVisibility, isUnalteredColumn, type RowVersion, readOldRow } from "./row-visibility.ts";
import type { ChangeSubscriber, StreamPosition } from "./subscriber.ts";

/** A change that is to be delivered. */
export type PendingChange = { readonly change: RowChange; readonly transaction: CommittedTransaction };
/** A step that runs in order with the changes, after everything that the stream delivered before it. */
type FeedStep = {
  readonly kind: "step";
  readonly run: () => void;
  /** True if the subscribers are the same after the step, so that changes on both sides are checked together. */
  readonly keepsSubscribers?: true;
};
/** The end of a transaction. */
type FeedCommit = { readonly kind: "commit"; readonly position: StreamPosition };
export type FeedEntry = PendingChange | FeedStep | FeedCommit;

/** Rows that are checked together, and the positions of each change's old and new row among them. */
type RowCheck = {
  readonly versions: readonly RowVersion[];
  readonly positions: ReadonlyMap<PendingChange, { readonly before: number | null; readonly after: number | null }>;
};
/** A check with its result: which rows are visible. */
type CheckedRows = RowCheck & { readonly visible: readonly boolean[] };

/** A change as a group sees it: an UPDATE of a row that the group can no longer see is a DELETE. */
type VisibleChange = Pick<DeliveredChange, "type" | "includesOld"> & { readonly version: RowVersion };

/** The messages that were encoded for a change. */
type EncodedChange = { readonly payload: ChangePayload; readonly frames: Map<VisibleColumns, Map<string, Buffer>> };

const NO_COMPARISONS = () => null;

/** Some changes of one table, in their order, and their subscribers. */
export class ChangeDelivery {
  readonly #changes: readonly PendingChange[];
  readonly #audience: ChangeAudience;
  readonly #history: string;
  /** The old row of each change. */
  readonly #oldRows: ReadonlyMap<PendingChange, ReplicatedRow | null>;
  readonly #checkedGroups = new Map<SubscriberGroup, CheckedRows>();
  readonly #versions = new Map<ReplicatedRow, RowVersion>();
  /** The checks that all groups share which every change concerns: there may be thousands of groups. */
  readonly #sharedChecks = new Map<boolean, RowCheck>();
  readonly #filterResults = new Map<GroupMember, FilterResult>();
  readonly #encoded = new Map<PendingChange, EncodedChange>();
  /** The memberships of each subscriber whose filters are evaluated by Postgres. */
  #membersBySubscriber: ReadonlyMap<ChangeSubscriber, readonly (readonly [GroupMember, CheckedRows])[]> | null = null;

  constructor(changes: readonly PendingChange[], audience: ChangeAudience, history: string) {
    this.#changes = changes;
    this.#audience = audience;
    this.#history = history;
    this.#oldRows = new Map(changes.map((pending) => [pending, readOldRow(pending.change, audience.table)]));
  }

  /** Checks which changes each group can see. A group that cannot be checked receives a gap. */
  async check(checkVisibility: CheckRowVisibility): Promise<void> {
    const { table, groups } = this.#audience;
    const changesOfGroups = this.#findChanges();
    const checkOne = async (group: SubscriberGroup): Promise<void> => {
      try {
        const check = this.#checkOf(group, changesOfGroups.get(group) ?? this.#changesOf(group));
        const visible = check.versions.length > 0 ? await checkVisibility(group, table, check.versions) : [];
        this.#checkedGroups.set(group, { ...check, visible });
      } catch (error) {
        const parts = isQueryCanceled(error) || toHttpError(error).status === 503 ? [] : splitByClaims(group);
        if (parts.length > 1) {
          await Promise.all(parts.map(checkOne));
          return;
        }
        const reason = `the policies of ${table.name} could not be evaluated (${toHttpError(error).message})`;
        for (const { subscriber } of group.members) subscriber.reportGap(reason);
      }
    };
    await Promise.all(groups.map(checkOne));
  }

  /** Starts to evaluate filters on the visible rows. Returns the subscribers who must wait for the results. */
  filter(
    filters: Pick<FilterEvaluator, "evaluate">,
    isActive: (subscriber: ChangeSubscriber) => boolean,
  ): Map<ChangeSubscriber, Promise<void>[]> {
    const waiting = new Map<ChangeSubscriber, Promise<void>[]>();
    for (const [{ caller, members }, checked] of this.#checkedGroups) {
      const requests = members
        .filter((member) => member.needsPostgres)
        .flatMap((member) => this.#filterRequest(member, checked));
      if (requests.length === 0) continue;
      for (const [member, result] of filters.evaluate({ caller, table: this.#audience.table, requests, isActive })) {
        const evaluated = result.then((results) => void this.#filterResults.set(member, results));
        // The subscriber may have left before the rejection.
        evaluated.catch(() => {});
        waiting.set(member.subscriber, [...(waiting.get(member.subscriber) ?? []), evaluated]);
      }
    }
    return waiting;
  }

  /** Sends one change to the subscribers who do not wait for filters. Returns the outboxes that should be waited for. */
  deliver(pending: PendingChange, isRecipient: (subscriber: ChangeSubscriber) => boolean): readonly Outbox[] {
    const encoded = this.#encode(pending);
    const slowOutboxes: Outbox[] = [];
    for (const [group, checked] of this.#checkedGroups) {
      const visible = this.#visibleChange(pending, checked);
      if (!visible) continue;
      for (const member of group.members) {
        const { subscriber } = member;
        if (!isRecipient(subscriber)) continue;
        this.#deliverTo(member, visible, encoded);
        if (subscriber.outbox.needsPacing) slowOutboxes.push(subscriber.outbox);
      }
    }
    return slowOutboxes;
  }

  /** Sends one change to a subscriber whose filters have been evaluated. */
  deliverFiltered(pending: PendingChange, subscriber: ChangeSubscriber): void {
    for (const [member, checked] of this.#membersOf(subscriber)) {
      const visible = this.#visibleChange(pending, checked);
      if (!visible) continue;
      const encoded = this.#encoded.get(pending) ?? this.#encode(pending);
      this.#encoded.set(pending, encoded);
      this.#deliverTo(member, visible, encoded);
    }
  }

  #membersOf(subscriber: ChangeSubscriber): readonly (readonly [GroupMember, CheckedRows])[] {
    if (!this.#membersBySubscriber) {
      const all = [...this.#checkedGroups].flatMap(([{ members }, checked]) =>
        members.map((member) => [member, checked] as const),
      );
      this.#membersBySubscriber = Map.groupBy(all, ([member]) => member.subscriber);
    }
    return this.#membersBySubscriber.get(subscriber) ?? [];
  }

  #encode(pending: PendingChange): EncodedChange {
    const change = { ...pending.change, old: this.#oldRows.get(pending)! };
    const payload = new ChangePayload(change, pending.transaction, this.#audience.table, this.#history);
    return { payload, frames: new Map() };
  }

  /** The changes that each group may match, as far as can be decided without Postgres. */
  #findChanges(): ReadonlyMap<SubscriberGroup, readonly PendingChange[]> {
    const index = new BindingIndex(this.#audience);
    const found = new Map<SubscriberGroup, PendingChange[]>(this.#audience.groups.map((group) => [group, []]));
    for (const pending of this.#changes)
      for (const group of index.groupsOf(pending.change, (binding) => this.#mayMatch(binding, pending)))
        found.get(group)!.push(pending);
    return found;
  }

  #changesOf({ members }: SubscriberGroup): readonly PendingChange[] {
    const bindings = members.flatMap((member) => member.bindings);
    return this.#changes.filter((pending) => bindings.some((binding) => this.#mayMatch(binding, pending)));
  }

  #checkOf(group: SubscriberGroup, changes: readonly PendingChange[]): RowCheck {
    const checksParts = group.visibility === "all";
    if (changes.length < this.#changes.length) return this.#makeCheck(changes, checksParts);
    const check = this.#sharedChecks.get(checksParts) ?? this.#makeCheck(changes, checksParts);
    this.#sharedChecks.set(checksParts, check);
    return check;
  }

  /** Makes a check. A row that the log has only in part (replica identity other than full) cannot be checked: policies may read any column. */
  #makeCheck(changes: readonly PendingChange[], checksParts: boolean): RowCheck {
    const versions: RowVersion[] = [];
    const position = (row: ReplicatedRow | null, change: RowChange) =>
      row && (checksParts || !row.includes(undefined)) ? versions.push(this.#versionOf(row, change)) - 1 : null;
    const positions = changes.map(
      (pending) =>
        [
          pending,
          {
            before: position(this.#oldRows.get(pending)!, pending.change),
            after: position(pending.change.new, pending.change),
          },
        ] as const,
    );
    return { versions, positions: new Map(positions) };
  }

  #mayMatch({ event, filters }: Binding, pending: PendingChange): boolean {
    const { change } = pending;
    const matchesKind = event === "*" || event === change.kind || (event === "DELETE" && change.kind === "UPDATE");
    if (!matchesKind) return false;
    const rows = [change.new, this.#oldRows.get(pending)!].filter((row) => row !== null);
    return rows.some((row) => filters.every((filter) => mayMatch(filter, this.#versionOf(row, change))));
  }

  #visibleChange(pending: PendingChange, { positions, visible }: CheckedRows): VisibleChange | null {
    const position = positions.get(pending);
    if (!position) return null;
    const { change } = pending;
    const seesBefore = position.before !== null && visible[position.before]!;
    const seesAfter = position.after !== null && visible[position.after]!;
    if (!seesBefore && !seesAfter) return null;
    return {
      type: seesAfter ? (change.kind as DeliveredChange["type"]) : "DELETE",
      includesOld: seesBefore || this.#oldRows.get(pending) === null,
      version: this.#versionOf((seesAfter ? change.new : this.#oldRows.get(pending))!, change),
    };
  }

  /** The rows visible to the member for which Postgres must evaluate a filter. */
  #filterRequest(member: GroupMember, checked: CheckedRows): FilterRequest[] {
    const versions = this.#changes.flatMap((pending) => {
      const visible = this.#visibleChange(pending, checked);
      if (!visible) return [];
      const needsEvaluation = ({ event, filters }: Binding) =>
        matchesEvent(event, visible) &&
        filters.some(needsPostgres) &&
        filters.every((filter) => mayMatch(filter, visible.version));
      return member.bindings.some(needsEvaluation) ? [visible.version] : [];
    });
    return versions.length > 0 ? [{ member, versions }] : [];
  }

  #deliverTo(member: GroupMember, visible: VisibleChange, { payload, frames }: EncodedChange): void {
    const { subscriber, bindings, columns } = member;
    const { version, type, includesOld } = visible;
    const results = this.#filterResults.get(member)?.get(version) ?? NO_COMPARISONS;
    const matching = bindings.filter(
      ({ event, filters }) =>
        matchesEvent(event, visible) && filters.every((filter) => filter.matches(version.get(filter.column), results)),
    );
    if (matching.length === 0) return;
    const ids = [...new Set(matching.map(({ id }) => id))].join(",");
    subscriber.outbox.send(changeFrame(subscriber, { ids, type, columns, includesOld }, payload, frames));
  }

  #versionOf(row: ReplicatedRow, { relation }: RowChange): RowVersion {
    const cached = this.#versions.get(row);
    if (cached) return cached;
    const { table } = this.#audience;
    const version = new Map<string, CellText>();
    for (const [at, column] of relation.columns.entries()) {
      if (isUnalteredColumn(table, column)) version.set(column.name, row[at]);
    }
    this.#versions.set(row, version);
    return version;
  }
}

function needsPostgres({ comparisons }: BindingFilter): boolean {
  return comparisons.length > 0;
}

/** True if the row may match the filter, as far as can be decided without Postgres. */
function mayMatch(filter: BindingFilter, version: RowVersion): boolean {
  return needsPostgres(filter) || filter.matches(version.get(filter.column), NO_COMPARISONS);
}

function matchesEvent(event: Binding["event"], { type }: VisibleChange): boolean {
  return event === "*" || event === type;
}

type AddressedChange = DeliveredChange & { readonly ids: string };

/** Returns one frame for all subscribers who are sent the same payload under the same topic. */
function changeFrame(
  { version, topic }: ChangeSubscriber,
  { ids, ...delivered }: AddressedChange,
  payload: ChangePayload,
  frames: Map<VisibleColumns, Map<string, Buffer>>,
): Buffer {
  const framesByKey = frames.get(delivered.columns) ?? new Map<string, Buffer>();
  frames.set(delivered.columns, framesByKey);
  const key = `${version} ${delivered.type} ${delivered.includesOld} ${ids} ${topic}`;
  let frame = framesByKey.get(key);
  if (!frame) {
    const envelope = { joinRef: null, ref: null, topic, event: "postgres_changes" };
    frame = encodeSocketFrame(
      "text",
      encodeMessage(version, envelope, `{"ids":[${ids}],"data":${payload.encode(delivered)}}`),
    );
    framesByKey.set(key, frame);
  }
  return frame;
}

export function changePosition({ transaction, change }: PendingChange): StreamPosition {
  return { commitLsn: transaction.commitLsn, index: change.index };
}

/** Returns the size of the change's values in bytes. */
export function changeBytes({ change }: PendingChange): number {
  return [...(change.new ?? []), ...(change.old ?? [])].reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
}

export function isStep(entry: FeedEntry): entry is FeedStep {
  return "kind" in entry && entry.kind === "step";
}

import { isQueryCanceled } from "../../engine/database/database-errors.ts";
import type { CommittedTransaction, ReplicatedRow, RowChange } from "../../engine/replication/changes.ts";
import { toHttpError } from "../../http/http-error.ts";
import { encodeMessage } from "../protocol/messages.ts";
import { encodeSocketFrame, type Outbox } from "../protocol/outbox.ts";
import { type ChangeAudience, type GroupMember, type SubscriberGroup, splitByClaims } from "./audience.ts";
import type { Binding } from "./binding.ts";
import { ChangePayload, type DeliveredChange, type VisibleColumns } from "./change-payload.ts";
import type { FilterEvaluator, FilterRequest, FilterResult } from "./filter-evaluation.ts";
import type { CellText } from "./row-filter.ts";
import { isUnalteredColumn, type RowVersion, readOldRow } from "./row-versions.ts";
import type { CheckRowVisibility } from "./row-visibility.ts";
import type { ChangeSubscriber } from "./subscriber.ts";

/** A change that is to be delivered. */
export type PendingChange = { readonly change: RowChange; readonly transaction: CommittedTransaction };

/** Rows that are checked together, and at which positions are a change's old and new row. */
type RowCheck = {
  readonly versions: readonly RowVersion[];
  readonly positions: ReadonlyMap<PendingChange, { readonly before: number | null; readonly after: number | null }>;
};
/** A check with its result: which rows are visible. */
type CheckedRows = RowCheck & { readonly visible: readonly boolean[] };

/** How a group sees a change: an UPDATE of a row that it can no longer see is a DELETE. */
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
  readonly #checked = new Map<SubscriberGroup, CheckedRows>();
  readonly #versions = new Map<ReplicatedRow, RowVersion>();
  /** Made once for all groups that every change concerns: there may be thousands. */
  readonly #wholeChecks = new Map<boolean, RowCheck>();
  readonly #filtered = new Map<GroupMember, FilterResult>();
  readonly #encoded = new Map<PendingChange, EncodedChange>();
  /** The memberships of each subscriber whose filters are evaluated by Postgres. */
  #membersBySubscriber: ReadonlyMap<ChangeSubscriber, readonly (readonly [GroupMember, CheckedRows])[]> | null = null;

  constructor(items: readonly PendingChange[], audience: ChangeAudience, history: string) {
    this.#changes = items;
    this.#audience = audience;
    this.#history = history;
    this.#oldRows = new Map(items.map((item) => [item, readOldRow(item.change, audience.table)]));
  }

  /** Checks which changes each group can see. A group that cannot be checked is told that it missed changes. */
  async check(checkVisibility: CheckRowVisibility): Promise<void> {
    const { table, groups } = this.#audience;
    const checkOne = async (group: SubscriberGroup): Promise<void> => {
      try {
        const check = this.#checkOf(group);
        const visible = check.versions.length > 0 ? await checkVisibility(group, table, check.versions) : [];
        this.#checked.set(group, { ...check, visible });
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

  /** Starts to evaluate filters on the visible rows. Returns the subscribers who must wait for that. */
  filter(
    filters: Pick<FilterEvaluator, "evaluate">,
    isActive: (subscriber: ChangeSubscriber) => boolean,
  ): Map<ChangeSubscriber, Promise<void>[]> {
    const waiting = new Map<ChangeSubscriber, Promise<void>[]>();
    for (const [{ caller, members }, checked] of this.#checked) {
      const requests = members
        .filter(({ needsPostgres: asks }) => asks)
        .flatMap((member) => this.#filterRequest(member, checked));
      if (requests.length === 0) continue;
      for (const [member, result] of filters.evaluate({ caller, table: this.#audience.table, requests, isActive })) {
        const known = result.then((answers) => void this.#filtered.set(member, answers));
        // The subscriber may have left by then.
        known.catch(() => {});
        waiting.set(member.subscriber, [...(waiting.get(member.subscriber) ?? []), known]);
      }
    }
    return waiting;
  }

  /** Sends one change to the subscribers who do not wait for filters. Returns the outboxes that should be waited for. */
  deliver(item: PendingChange, isRecipient: (subscriber: ChangeSubscriber) => boolean): readonly Outbox[] {
    const encoded = this.#encode(item);
    const slowOutboxes: Outbox[] = [];
    for (const [group, checked] of this.#checked) {
      const visible = this.#visibleChange(item, checked);
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
  deliverFiltered(item: PendingChange, subscriber: ChangeSubscriber): void {
    for (const [member, checked] of this.#membersOf(subscriber)) {
      const visible = this.#visibleChange(item, checked);
      if (!visible) continue;
      const encoded = this.#encoded.get(item) ?? this.#encode(item);
      this.#encoded.set(item, encoded);
      this.#deliverTo(member, visible, encoded);
    }
  }

  #membersOf(subscriber: ChangeSubscriber): readonly (readonly [GroupMember, CheckedRows])[] {
    if (!this.#membersBySubscriber) {
      const all = [...this.#checked].flatMap(([{ members }, checked]) =>
        members.map((member) => [member, checked] as const),
      );
      this.#membersBySubscriber = Map.groupBy(all, ([member]) => member.subscriber);
    }
    return this.#membersBySubscriber.get(subscriber) ?? [];
  }

  #encode(item: PendingChange): EncodedChange {
    const change = { ...item.change, old: this.#oldRows.get(item)! };
    const text = new ChangePayload(change, item.transaction, this.#audience.table, this.#history);
    return { payload: text, frames: new Map() };
  }

  #checkOf(group: SubscriberGroup): RowCheck {
    const items = this.#changes.filter((item) => group.members.some((member) => this.#mayMatch(member, item)));
    const checksParts = group.visibility === "all";
    if (items.length < this.#changes.length) return this.#makeCheck(items, checksParts);
    const check = this.#wholeChecks.get(checksParts) ?? this.#makeCheck(items, checksParts);
    this.#wholeChecks.set(checksParts, check);
    return check;
  }

  /** A row that the log has only in part (replica identity other than full) cannot be checked: policies may read any column. */
  #makeCheck(items: readonly PendingChange[], checksParts: boolean): RowCheck {
    const versions: RowVersion[] = [];
    const position = (row: ReplicatedRow | null, change: RowChange) =>
      row && (checksParts || !row.includes(undefined)) ? versions.push(this.#versionOf(row, change)) - 1 : null;
    const positions = items.map(
      (item) =>
        [
          item,
          { before: position(this.#oldRows.get(item)!, item.change), after: position(item.change.new, item.change) },
        ] as const,
    );
    return { versions, positions: new Map(positions) };
  }

  /** As far as can be decided without Postgres. */
  #mayMatch({ bindings }: GroupMember, item: PendingChange): boolean {
    const { change } = item;
    const rows = [change.new, this.#oldRows.get(item)!].filter((row) => row !== null);
    const versions = rows.map((row) => this.#versionOf(row, change));
    return bindings.some(({ event, filters: tests }) => {
      const isAwaited = event === "*" || event === change.kind || (event === "DELETE" && change.kind === "UPDATE");
      return isAwaited && versions.some((version) => tests.every((test) => mayMatch(test, version)));
    });
  }

  #visibleChange(item: PendingChange, { positions, visible }: CheckedRows): VisibleChange | null {
    const position = positions.get(item);
    if (!position) return null;
    const { change } = item;
    const seesBefore = position.before !== null && visible[position.before]!;
    const seesAfter = position.after !== null && visible[position.after]!;
    if (!seesBefore && !seesAfter) return null;
    return {
      type: seesAfter ? (change.kind as DeliveredChange["type"]) : "DELETE",
      includesOld: seesBefore || this.#oldRows.get(item) === null,
      version: this.#versionOf((seesAfter ? change.new : this.#oldRows.get(item))!, change),
    };
  }

  /** The rows visible to the member for which Postgres must evaluate a filter. */
  #filterRequest(member: GroupMember, checked: CheckedRows): FilterRequest[] {
    const versions = this.#changes.flatMap((item) => {
      const visible = this.#visibleChange(item, checked);
      if (!visible) return [];
      const isAsked = ({ event, filters: tests }: Binding) =>
        matchesEvent(event, visible) &&
        tests.some(needsPostgres) &&
        tests.every((test) => mayMatch(test, visible.version));
      return member.bindings.some(isAsked) ? [visible.version] : [];
    });
    return versions.length > 0 ? [{ member, versions }] : [];
  }

  #deliverTo(member: GroupMember, visible: VisibleChange, { payload: text, frames }: EncodedChange): void {
    const { subscriber, bindings, columns: view } = member;
    const { version, type, includesOld: withOld } = visible;
    const answers = this.#filtered.get(member)?.get(version) ?? NO_COMPARISONS;
    const matching = bindings.filter(
      ({ event, filters: tests }) =>
        matchesEvent(event, visible) && tests.every((test) => test.matches(version.get(test.column), answers)),
    );
    if (matching.length === 0) return;
    const ids = [...new Set(matching.map(({ id }) => id))].join(",");
    subscriber.outbox.send(changeFrame(subscriber, { ids, type, columns: view, includesOld: withOld }, text, frames));
  }

  #versionOf(row: ReplicatedRow, { relation }: RowChange): RowVersion {
    const known = this.#versions.get(row);
    if (known) return known;
    const { table } = this.#audience;
    const version = new Map<string, CellText>();
    for (const [at, column] of relation.columns.entries()) {
      if (isUnalteredColumn(table, column)) version.set(column.name, row[at]);
    }
    this.#versions.set(row, version);
    return version;
  }
}

type BindingFilter = Binding["filters"][number];

function needsPostgres({ comparisons: questions }: BindingFilter): boolean {
  return questions.length > 0;
}

/** As far as can be decided without Postgres. */
function mayMatch(filter: BindingFilter, version: RowVersion): boolean {
  return needsPostgres(filter) || filter.matches(version.get(filter.column), NO_COMPARISONS);
}

function matchesEvent(event: Binding["event"], { type }: VisibleChange): boolean {
  return event === "*" || event === type;
}

type AddressedChange = DeliveredChange & { readonly ids: string };

/** One frame for all subscribers who are sent the same payload under the same topic. */
function changeFrame(
  { version, topic }: ChangeSubscriber,
  { ids, ...delivered }: AddressedChange,
  payload: ChangePayload,
  frames: Map<VisibleColumns, Map<string, Buffer>>,
): Buffer {
  const known = frames.get(delivered.columns) ?? new Map<string, Buffer>();
  frames.set(delivered.columns, known);
  const key = `${version} ${delivered.type} ${delivered.includesOld} ${ids} ${topic}`;
  let frame = known.get(key);
  if (!frame) {
    const envelope = { joinRef: null, ref: null, topic, event: "postgres_changes" };
    frame = encodeSocketFrame(
      "text",
      encodeMessage(version, envelope, `{"ids":[${ids}],"data":${payload.encode(delivered)}}`),
    );
    known.set(key, frame);
  }
  return frame;
}

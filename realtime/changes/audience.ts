import type { Caller } from "#accounts/identity";
import {
  type Catalog,
  type CatalogTable,
  policyCondition,
  type QualifiedName,
  type RowVisibility,
  readTableAccess,
  type TableAccess,
} from "#catalog";
import type { CatalogKeeper } from "#catalog/loading";
import {
  claimsKey,
  type FindMissingPolicyColumns,
  type PolicyClaims,
  type PolicyClaimsReader,
} from "#live/policy-claims";
import type { ReplicatedRelation } from "#live/stream";
import { batchLookups, type Supervisor, type WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { Binding } from "./binding.ts";
import { selectVisibleColumns, type VisibleColumns } from "./change-payload.ts";
import type { Publication, PublicationMember } from "./publication.ts";
import { isUnalteredColumn } from "./row-visibility.ts";
import type { ChangeSubscriber } from "./subscriber.ts";

export type AudienceDependencies = {
  readonly catalog: CatalogKeeper;
  readonly claims: PolicyClaimsReader;
  readonly publication: Publication;
  readonly findMissingColumns: FindMissingPolicyColumns;
  readonly log: Pick<Logger, "warn">;
};

/** Groups the subscribers to a table's changes; null if the catalogue does not have the table. */
type FindAudience = (
  subscribers: ReadonlySet<ChangeSubscriber>,
  relation: ReplicatedRelation,
) => Promise<ChangeAudience | null>;

export function makeFindAudience({
  catalog,
  claims,
  publication,
  findMissingColumns,
  log,
}: AudienceDependencies): FindAudience {
  const checked = new WeakSet<ReplicatedRelation>();

  const tableOf = async (relation: ReplicatedRelation): Promise<CatalogTable | null> => {
    const findTable = () => catalog.current().findTable(relation);
    if (!isUpToDate(findTable(), relation) && !checked.has(relation)) await catalog.reload();
    checked.add(relation);
    const table = findTable();
    return table?.oid === relation.oid ? table : null;
  };

  /** Leaves out subscribers whose policies read columns that the change does not have. */
  const withoutUncheckable = async (
    { table, groups }: ChangeAudience,
    relation: ReplicatedRelation,
  ): Promise<ChangeAudience> => {
    const unaltered = relation.columns.filter((column) => isUnalteredColumn(table, column));
    reportAlteredFilters({ table, groups }, relation);
    const missing = await findMissingColumns(table, new Set(unaltered.map(({ name }) => name)));
    if (missing.length === 0) return { table, groups };
    const columns = await publication.columns(table);
    const isLeftOut = columns !== null && !missing.every((name) => columns.has(name));
    const checkable = groups.filter(isCheckedWithoutRows);
    const uncheckable = groups.filter((group) => !isCheckedWithoutRows(group));
    if (isLeftOut) {
      const { schema, name } = table;
      if (uncheckable.length > 0)
        log.warn({ schema, name, unseen: missing }, "the publication does not include columns that policies read");
    } else {
      // The table was created or altered a moment ago: earlier changes do not have the column.
      for (const { subscriber } of uncheckable.flatMap(({ members }) => members))
        subscriber.reportGap(alteredReason(table));
    }
    return { table, groups: checkable };
  };

  return async (subscribers, relation) => {
    const table = await tableOf(relation);
    if (!table) return null;
    const audience = await groupSubscribers(subscribers, { catalog: catalog.current(), table, claims });
    return withoutUncheckable(audience, relation);
  };
}

function isUpToDate(table: CatalogTable | undefined, { oid, columns }: ReplicatedRelation): boolean {
  return table?.oid === oid && columns.every((column) => isUnalteredColumn(table, column));
}

/** Reports a gap to subscribers whose filters cannot be applied to values from before their column was altered. */
function reportAlteredFilters({ table, groups }: ChangeAudience, { columns }: ReplicatedRelation): void {
  const altered = new Set(columns.filter((column) => !isUnalteredColumn(table, column)).map(({ name }) => name));
  if (altered.size === 0) return;
  for (const { subscriber, bindings } of groups.flatMap(({ members }) => members)) {
    const isFiltered = bindings.some(({ filters }) => filters.some(({ column }) => altered.has(column)));
    if (isFiltered) subscriber.reportGap(alteredReason(table));
  }
}

function alteredReason({ name }: CatalogTable): string {
  return `the table ${name} was altered`;
}

function isCheckedWithoutRows({ visibility }: SubscriberGroup): boolean {
  return typeof visibility === "string";
}

/** The subscribers to a table's changes. */
export type ChangeAudience = { readonly table: CatalogTable; readonly groups: readonly SubscriberGroup[] };

/** Subscribers who see the same rows, so that Postgres checks them once for all. */
export type SubscriberGroup = {
  /** The caller of one member: the others have the same role, and the same values of the claims that the policies read. */
  readonly caller: Caller;
  readonly visibility: RowVisibility;
  readonly commonCondition: string | null;
  readonly members: readonly GroupMember[];
};

/** Bindings of one subscriber that select the same columns: a change is sent for them in one message. */
export type GroupMember = {
  readonly subscriber: ChangeSubscriber;
  readonly bindings: readonly Binding[];
  readonly columns: VisibleColumns;
  /** True if Postgres must evaluate a filter. */
  readonly needsPostgres: boolean;
};

type GroupingContext = {
  readonly catalog: Catalog;
  readonly table: CatalogTable;
  readonly claims: PolicyClaimsReader;
};

async function groupSubscribers(
  subscribers: Iterable<ChangeSubscriber>,
  context: GroupingContext,
): Promise<ChangeAudience> {
  const { catalog, table, claims: reader } = context;
  const groups = new Map<string, GroupInProgress>();
  const columnsByAccess = new Map<TableAccess, Map<string, VisibleColumns>>();
  for (const subscriber of subscribers) {
    const bindings = subscriber.bindings.filter((binding) => matchesTable(binding, table));
    if (bindings.length === 0) continue;
    const { caller } = subscriber;
    const access = readTableAccess(catalog, table, caller.role);
    if (!access || access.visibility === "none") continue;
    if (!bindings.every((binding) => isStillReadable(binding, access, table))) {
      subscriber.reportGap(`a column of ${table.name} was revoked, altered or dropped`);
      continue;
    }
    const { visibility } = access;
    const claimsRead = visibility === "all" ? "" : claimsKey(caller, await reader.read(table, visibility.policies));
    const key = JSON.stringify([caller.role, claimsRead]);
    const group = groups.get(key) ?? { caller, access, members: [] };
    groups.set(key, group);
    group.members.push(...toGroupMembers(subscriber, bindings, access, table, columnsByAccess));
  }
  const toGroup = async ({ caller, access: { visibility }, members }: GroupInProgress): Promise<SubscriberGroup> => {
    const commonCondition = await findCommonCondition(visibility, table, reader);
    return { caller, visibility, commonCondition, members };
  };
  return { table, groups: await Promise.all([...groups.values()].map(toGroup)) };
}

type GroupInProgress = { readonly caller: Caller; readonly access: TableAccess; readonly members: GroupMember[] };

/**
 * The permissive policies that read no claims, such as the one that shows published rows to everybody: such rows are checked once per
 * role, not once per group. Null if there are none, or if all are: then the role is one group.
 */
async function findCommonCondition(
  visibility: RowVisibility,
  table: CatalogTable,
  claims: PolicyClaimsReader,
): Promise<string | null> {
  if (typeof visibility === "string" || visibility.policies.some(({ permissive }) => !permissive)) return null;
  const { policies } = visibility;
  const claimsRead = await Promise.all(policies.map((policy) => claims.read(table, [policy])));
  const common = policies.filter((_, index) => isEmptySet(claimsRead[index]!));
  if (common.length === 0 || common.length === policies.length) return null;
  return common.map((policy) => `(${policyCondition(policy)})`).join(" or ");
}

function isEmptySet(claims: PolicyClaims): boolean {
  return claims !== "all" && claims.size === 0;
}

/** Splits a group by all claims, so that claims which make a policy fail affect nobody else. */
export function splitByClaims({ members, ...rest }: SubscriberGroup): readonly SubscriberGroup[] {
  const parts = Map.groupBy(members, ({ subscriber }) => subscriber.caller.claimsText);
  return [...parts.values()].map((part) => ({ ...rest, caller: part[0]!.subscriber.caller, members: part }));
}

function matchesTable(
  { schema, table }: Binding,
  relation: { readonly schema: string; readonly name: string },
): boolean {
  return (schema === null || schema === relation.schema) && (table === null || table === relation.name);
}

/** True if the binding is readable. Bindings are validated at the join: later a column may be revoked, altered or dropped. */
function isStillReadable({ filters, select }: Binding, access: TableAccess, { columns }: CatalogTable): boolean {
  const isSelected = [...(select ?? [])].every((column) => access.columns.has(column));
  const isOfType = (column: string, oid: number) => columns.get(column)?.baseType.oid === oid;
  return isSelected && filters.every(({ column, type }) => access.columns.has(column) && isOfType(column, type.oid));
}

function toGroupMembers(
  subscriber: ChangeSubscriber,
  bindings: readonly Binding[],
  access: TableAccess,
  table: CatalogTable,
  columnsByAccess: Map<TableAccess, Map<string, VisibleColumns>>,
): GroupMember[] {
  const bySelect = Map.groupBy(bindings, ({ select }) => (select ? JSON.stringify([...select].sort()) : ""));
  return [...bySelect].map(([key, sameSelect]) => {
    const cached = columnsByAccess.get(access) ?? new Map<string, VisibleColumns>();
    columnsByAccess.set(access, cached);
    const columns = cached.get(key) ?? selectVisibleColumns(access, sameSelect[0]!.select, table);
    cached.set(key, columns);
    const needsPostgres = sameSelect.some(({ filters }) => filters.some(({ comparisons }) => comparisons.length > 0));
    return { subscriber, bindings: sameSelect, columns, needsPostgres };
  });
}

type LapseContext = { readonly catalog: Pick<CatalogKeeper, "current">; readonly publication: Publication };

/** Finds subscribers who would no longer receive a table that they were granted when they joined, with the reason. */
async function findLapsedSubscribers(
  subscribers: readonly ChangeSubscriber[],
  { catalog, publication }: LapseContext,
): Promise<ReadonlyMap<ChangeSubscriber, string>> {
  const current = catalog.current();
  const reasonFor = async ({ schema, table }: Binding, role: string): Promise<string | null> => {
    if (!(await publication.has(schema, table))) return `changes of ${table ?? "any table"} are no longer published`;
    if (schema === null || table === null) return null;
    const found = current.findTable({ schema, name: table });
    return found && readTableAccess(current, found, role) ? null : `you may no longer read ${table}`;
  };
  // There are many subscribers with few different bindings: each is looked up once.
  const reasons = new Map<string, Promise<string | null>>();
  const reasonOf = (binding: Binding, role: string): Promise<string | null> => {
    const key = JSON.stringify([binding.schema, binding.table, role]);
    const reason = reasons.get(key) ?? reasonFor(binding, role);
    reasons.set(key, reason);
    return reason;
  };
  const lapsed = new Map<ChangeSubscriber, string>();
  const examine = async (subscriber: ChangeSubscriber): Promise<void> => {
    const { bindings, caller } = subscriber;
    const found = await Promise.all(bindings.map((binding) => reasonOf(binding, caller.role)));
    const reason = found.find((each) => each !== null);
    if (reason) lapsed.set(subscriber, reason);
  };
  await Promise.all(subscribers.map(examine));
  return lapsed;
}

type PublicationWatchOptions = LapseContext & {
  /** The subscribers who are sent changes at this time, or will be. */
  readonly subscribers: ReadonlySet<ChangeSubscriber>;
  readonly supervisor: Supervisor;
  readonly log: Pick<Logger, "warn">;
};

const PUBLICATION_POLL_MS = 5_000;
const AFTER_SCHEMA_CHANGE = "schema";

/**
 * Ends subscriptions to tables that are no longer published or readable, or were not for a while. Event triggers report that at once;
 * otherwise, and for a table that is published again by then, nothing in the stream shows it.
 */
export class PublicationWatch {
  readonly #options: PublicationWatchOptions;
  /** The subscribers who subscribed before the last comparison. */
  readonly #watched = new WeakSet<ChangeSubscriber>();
  readonly #compareTogether: (cause: string) => Promise<void>;
  readonly #report: WorkReport;
  #digest: string | null = null;
  #members: readonly PublicationMember[] = [];
  /** The catalogue of the last comparison, which has tables that were dropped since. */
  #catalog: Catalog | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PublicationWatchOptions) {
    this.#options = options;
    this.#report = options.supervisor.report("watch of the publication");
    this.#compareTogether = batchLookups((causes) => this.#compare(causes.includes(AFTER_SCHEMA_CHANGE)));
  }

  /** Resolves when later changes of the publication are reported to the subscriber. */
  async begin(subscriber: ChangeSubscriber): Promise<void> {
    this.#timer ??= setInterval(() => void this.#compareAgain(), PUBLICATION_POLL_MS).unref();
    await this.#compareTogether("");
    this.#watched.add(subscriber);
  }

  /** Watches the publication for a subscriber that was sent changes before. */
  continue(subscriber: ChangeSubscriber): void {
    this.#watched.add(subscriber);
    this.begin(subscriber).catch(() => {});
  }

  /** Compares the publication after a change of the schema. */
  async check(): Promise<void> {
    try {
      await this.#compareTogether(AFTER_SCHEMA_CHANGE);
    } catch (error) {
      this.#options.log.warn({ err: error }, "could not check whether subscribed tables are still published");
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#report.close();
  }

  async #compareAgain(): Promise<void> {
    await this.#report.watch(() => this.#compareTogether("")).catch(() => {});
  }

  async #compare(isSchemaChanged: boolean): Promise<void> {
    const { publication, subscribers, catalog } = this.#options;
    const digest = await publication.digest();
    if (digest === this.#digest && !isSchemaChanged) return;
    const members = await publication.members();
    const marks = new Map(members.map((member) => [memberKey(member), member.mark]));
    const altered = this.#members.filter((member) => marks.get(memberKey(member)) !== member.mark);
    const current = catalog.current();
    const isReadable = makeReadabilityCheck([this.#catalog ?? current, current]);
    this.#digest = digest;
    this.#members = members;
    this.#catalog = current;
    const lapsed = await findLapsedSubscribers([...subscribers], this.#options);
    for (const subscriber of [...subscribers]) {
      const missed = this.#watched.has(subscriber) ? alteredPublicationReason(subscriber, altered, isReadable) : null;
      const reason = lapsed.get(subscriber) ?? missed;
      if (reason !== null) subscriber.reportGap(reason);
    }
  }
}

function memberKey({ schema, name }: PublicationMember): string {
  return JSON.stringify([schema, name]);
}

/** Returns the reason, which names no table that the subscriber may not read: a binding of any table matches those too. */
function alteredPublicationReason(
  { bindings, caller }: ChangeSubscriber,
  altered: readonly PublicationMember[],
  isReadable: (table: QualifiedName, role: string) => boolean | null,
): string | null {
  let reason: string | null = null;
  for (const member of altered) {
    if (!bindings.some((binding) => matchesTable(binding, member))) continue;
    const readable = isReadable(member, caller.role);
    if (readable) return `changes of ${member.name} were not published for a while`;
    if (readable === null) reason = "changes of a table were not published for a while";
  }
  return reason;
}

/** Makes the check if a role may see rows of a table by one of the catalogues; null if none of them has had the table yet. */
function makeReadabilityCheck(catalogs: readonly Catalog[]) {
  return (name: QualifiedName, role: string): boolean | null => {
    const known = catalogs.flatMap((catalog) => {
      const table = catalog.findTable(name);
      return table ? [readTableAccess(catalog, table, role)] : [];
    });
    if (known.length > 0) return known.some((access) => access !== null && access.visibility !== "none");
    return catalogs.some(({ schemas }) => schemas.get(name.schema)?.exposed) ? null : false;
  };
}

import pg from "pg";
import { readSmartTag } from "#catalog";
import { type ContentTable, HAS_COPIED_ROWS, IS_MEMBER, quotedNameSql } from "./content/content-tables.ts";

/** Tables with at most this number of rows are copied completely. */
const SMALL_TABLE_ROWS = 1_000;

export type SampleOptions = {
  /** A number above 0 and at most 1. */
  readonly share: number;
  /** Another seed selects other rows. */
  readonly seed: number;
};

/**
 * Must be called before the transaction that reads, because that creates nothing. A row is identified by its ctid, which is
 * the same for the whole snapshot.
 */
export async function prepareSample(client: pg.ClientBase): Promise<void> {
  await client.query(
    "create temporary table sampled_rows (relation oid, row_id tid, step int4 not null, primary key (relation, row_id))",
  );
}

/**
 * Returns the tables with the condition that selects the rows of the sample: a share of each table by the hash of its key,
 * and all rows that these refer to, in the snapshot of the open transaction.
 */
export async function sampleRows(
  client: pg.ClientBase,
  tables: readonly ContentTable[],
  { share, seed, isWhole }: SampleOptions & { readonly isWhole: (table: ContentTable) => boolean },
): Promise<ContentTable[]> {
  const whole = new Set(tables.filter(isWhole).map(({ table }) => table));
  const { rows: sources } = await client.query<SampledRows>(ROW_SOURCES);
  const policies = new Map(sources.map((source) => [source.root, whole.has(source.name) ? WHOLE : policyOf(source)]));
  const newest = new Map<number, number>();
  for (const source of sources) {
    const condition = await seedCondition(client, source, policies.get(source.root)!, { share, seed });
    if (condition === null) continue;
    const { rowCount } = await client.query(
      `insert into pg_temp.sampled_rows select t.tableoid, t.ctid, 1 from ${source.from} as t where ${condition}`,
    );
    if (rowCount) newest.set(source.root, 1);
  }
  const { rows: keys } = await client.query<SampledKey>(FOREIGN_KEYS);
  await followReferences(client, referencesOf(keys, policies), newest);
  return tables.map((table) => (table.isOfExtension ? table : { ...table, condition: sampledCondition(table) }));
}

/** A table, or a partitioned table with all its partitions. */
type SampledRows = {
  readonly root: number;
  readonly name: string;
  /** The FROM item, without the rows of tables that inherit from it, which are separate tables. */
  readonly from: string;
  /** A text that identifies a row. */
  readonly key: string;
  readonly columns: readonly string[];
  readonly comment: string | null;
  /** True for a table of an extension, which is copied completely, as in backups. */
  readonly isOfExtension: boolean;
};

const fromOf = (relation: string) =>
  `(select case relkind when 'p' then '' else 'only ' end || oid::regclass from pg_class where oid = ${relation})`;
const rootOf = (relation: string) => `coalesce(pg_partition_root(${relation}), ${relation})::oid::int8`;
const relationsOf = (relation: string) =>
  `array(select ${relation}::int8 union select relid::oid::int8 from pg_partition_tree(${relation}))`;

const ROW_SOURCES = `
  select c.oid as root, ${quotedNameSql("nspname", "relname")} as name, ${fromOf("c.oid")} as from,
    obj_description(c.oid, 'pg_class') as comment, ${IS_MEMBER} as "isOfExtension", coalesce((
      select format('row(%s)', string_agg(format('t.%I', attname), ', ' order by attnum))
      from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey)
      where indrelid = c.oid and indisprimary having count(*) > 0), '(t.*)') as key, array(
        select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns
  from pg_class c join pg_namespace n on n.oid = relnamespace
  where relkind in ('r', 'p') and not relispartition and ${HAS_COPIED_ROWS}
  order by nspname collate "C", relname collate "C"`;

/**
 * The rows that the sample takes of a table besides those that others refer to: a share, all, none, or those that belong to
 * a sampled row.
 */
type SamplePolicy =
  | { readonly kind: "share" | "whole" | "none" }
  | { readonly kind: "with"; readonly columns: readonly string[] };

const WHOLE: SamplePolicy = { kind: "whole" };

/** Reads the smart tag `@sample all`, `@sample none` or `@sample with order_id` of a table. */
function policyOf({ name, columns, comment, isOfExtension }: SampledRows): SamplePolicy {
  const [word, ...named] = readSmartTag(comment, "sample")?.split(/[\s,]+/) ?? [];
  if (isOfExtension && word !== undefined && word !== "all")
    throw new Error(
      `The comment of ${name} has a tag @sample, but tables of extensions come whole. Write "@sample all".`,
    );
  if (word === undefined) return isOfExtension ? WHOLE : { kind: "share" };
  if (word === "all" && named.length === 0) return WHOLE;
  if (word === "none" && named.length === 0) return { kind: "none" };
  if (word === "with" && named.length > 0 && named.every((column) => columns.includes(column)))
    return { kind: "with", columns: named };
  throw new Error(
    `The comment of ${name} has a tag @sample that cannot be read. Write "@sample all", "@sample none", or "@sample with" and the columns of a foreign key.`,
  );
}

/** Returns the condition of the rows that are sampled directly; null if there are none. */
async function seedCondition(
  client: pg.ClientBase,
  { name, from, key }: SampledRows,
  { kind }: SamplePolicy,
  { share, seed }: SampleOptions,
): Promise<string | null> {
  if (kind === "none" || kind === "with") return null;
  if (kind === "whole" || share === 1 || (await isSmall(client, from))) return "true";
  // The hash includes the table's name: otherwise tables with equal keys would have the same sampled rows, and none of the
  // rows between them.
  const hash = `hashtextextended(${pg.escapeLiteral(name)} || (${key}::text collate "C"), ${seed})`;
  return `${hash} & ${2n ** 63n - 1n} < ${BigInt(Math.round(share * 2 ** 53)) << 10n}`;
}

async function isSmall(client: pg.ClientBase, from: string): Promise<boolean> {
  const { rowCount } = await client.query(`select from ${from} as t limit ${SMALL_TABLE_ROWS + 1}`);
  return (rowCount ?? 0) <= SMALL_TABLE_ROWS;
}

type KeySide = { readonly root: number; readonly from: string; readonly relations: readonly number[] };

type SampledKey = {
  readonly referencing: KeySide;
  readonly referenced: KeySide;
  readonly columns: readonly string[];
  /** The join condition with the aliases `referenced` and `referencing`. */
  readonly condition: string;
};

const sideOf = (relation: string) =>
  `json_build_object('root', ${rootOf(relation)}, 'from', ${fromOf(relation)}, 'relations', ${relationsOf(relation)})`;

/** The conditions use the operators of the constraints, which need not be on the search path: for citext, and `&&` for periods. */
const FOREIGN_KEYS = `
  select ${sideOf("conrelid")} as referencing, ${sideOf("confrelid")} as referenced, array(
      select attname::text from pg_attribute where attrelid = conrelid and attnum = any(conkey)) as columns, (
      select string_agg(format('referenced.%I operator(%I.%s) referencing.%I%s', one.attname, nspname, oprname, other.attname,
          case when one.attcollation <> other.attcollation then ' collate ' || nullif(one.attcollation, 0)::regcollation end),
        ' and ')
      from unnest(confkey, conpfeqop, conkey) as pair (one_number, operator, other_number)
      join pg_attribute one on one.attrelid = confrelid and one.attnum = one_number
      join pg_attribute other on other.attrelid = conrelid and other.attnum = other_number
      join pg_operator o on o.oid = operator join pg_namespace n on n.oid = oprnamespace) as condition
  from pg_constraint where contype = 'f' and conparentid = 0
  order by conrelid::regclass::text collate "C", conname`;

/** A step from rows of the sample to rows that must be added. */
type Reference = {
  readonly from: KeySide;
  readonly to: KeySide;
  readonly join: string;
  /** The step up to which the reference was followed. */
  followed: number;
};

function referencesOf(keys: readonly SampledKey[], policies: ReadonlyMap<number, SamplePolicy>): Reference[] {
  return keys.flatMap(({ referencing, referenced, columns, condition }) => {
    const policy = policies.get(referencing.root);
    if (!policy || !policies.has(referenced.root)) return [];
    const sources = [`${referencing.from} as referencing`, `${referenced.from} as referenced`];
    const join = (target: "referencing" | "referenced") => {
      const [source, other] = target === "referenced" ? sources : sources.toReversed();
      const alias = target === "referenced" ? "referencing" : "referenced";
      return `join ${source} on ${alias}.tableoid = s.relation and ${alias}.ctid = s.row_id
        cross join lateral (select ${target}.tableoid as relation, ${target}.ctid as row_id from ${other} where ${condition}) as found`;
    };
    const up = { from: referencing, to: referenced, join: join("referenced"), followed: 0 };
    const belongs = policy.kind === "with" && columns.some((column) => policy.columns.includes(column));
    return belongs ? [up, { from: referenced, to: referencing, join: join("referencing"), followed: 0 }] : [up];
  });
}

/**
 * Repeats until no reference leads to another row. Each statement follows one reference for all rows that were added since
 * it was last followed.
 */
async function followReferences(
  client: pg.ClientBase,
  references: readonly Reference[],
  newest: Map<number, number>,
): Promise<void> {
  let step = 1;
  for (let isComplete = false; !isComplete; ) {
    isComplete = true;
    await client.query("analyze pg_temp.sampled_rows");
    for (const reference of references) {
      const { from, to, join, followed } = reference;
      if ((newest.get(from.root) ?? 0) <= followed) continue;
      isComplete = false;
      const isOfItself = from.from === to.from;
      reference.followed = isOfItself ? step + 1 : step;
      step++;
      const start = `select relation, row_id from pg_temp.sampled_rows where step > ${followed} and relation = any($1::int8[]::oid[])`;
      const found = isOfItself
        ? `with recursive s as (${start} union select found.* from s ${join}) select relation, row_id from s`
        : `select distinct found.relation, found.row_id from (${start}) as s ${join}`;
      // For a table that refers to itself, each round of a recursive query would read the whole table to hash it.
      await client.query(`set local enable_hashjoin = ${!isOfItself}; set local enable_mergejoin = ${!isOfItself}`);
      const { rowCount } = await client.query(
        `insert into pg_temp.sampled_rows select relation, row_id, ${step} from (${found}) as found on conflict do nothing`,
        [from.relations],
      );
      if (rowCount) newest.set(to.root, step);
    }
  }
  await client.query("set local enable_hashjoin = default; set local enable_mergejoin = default");
}

function sampledCondition({ table }: ContentTable): string {
  return `join pg_temp.sampled_rows as s on s.relation = ${pg.escapeLiteral(table)}::regclass and s.row_id = t.ctid`;
}

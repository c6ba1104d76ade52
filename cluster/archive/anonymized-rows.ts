import pg from "pg";
import { hasSmartTag, readSmartTag } from "#catalog";
import { type AnonymizationRule, parseAnonymizationRule } from "./anonymization-rules.ts";
import { type ContentTable, HAS_COPIED_ROWS, quotedNameSql, setPortableFormats } from "./content/content-tables.ts";

/** The setting of the transaction that holds the secret, so that it appears in no statement and ends with the transaction. */
const SECRET = "content_service.pseudonym_secret";

/** The rules of the smart tags `@anonymize`, by `"schema"."table"` and the name of the column. */
type Anonymization = {
  readonly rules: ReadonlyMap<string, ReadonlyMap<string, AnonymizationRule>>;
  /** The tables whose rows are left out. */
  readonly emptied: ReadonlySet<string>;
};

/** Returns the tables except those that are left out, with replaced personal values, in the open transaction. */
export async function anonymizeRows(
  client: pg.ClientBase,
  tables: readonly ContentTable[],
): Promise<readonly ContentTable[]> {
  const { rules, emptied } = await readAnonymization(client);
  await client.query(`select set_config('${SECRET}', gen_random_uuid()::text || gen_random_uuid(), true)`);
  return tables
    .filter(({ table }) => !emptied.has(table))
    .map((table) => {
      const ofTable = rules.get(table.table);
      if (!ofTable) return table;
      const values = table.columns.map((name) => {
        const value = `t.${pg.escapeIdentifier(name)}`;
        return ofTable.get(name)?.replace(value, `current_setting('${SECRET}')`) ?? value;
      });
      return { ...table, values: `row(${values})` };
    });
}

/** Throws if tags cannot be applied, and lists all of them. */
export async function checkAnonymization(client: pg.ClientBase): Promise<void> {
  await setPortableFormats(client);
  await client.query("begin read only");
  await readAnonymization(client);
  await client.query("rollback");
}

async function readAnonymization(client: pg.ClientBase): Promise<Anonymization> {
  const problems: string[] = [];
  const rules = new Map<string, Map<string, AnonymizationRule>>();
  const personal: TaggedColumn[] = [];
  for (const column of (await client.query<TaggedColumn>(TAGGED_COLUMNS)).rows) {
    const tag = tagOf(column.comments);
    if (tag === null) {
      if (column.comments.some((comment) => hasSmartTag(comment, "personal"))) personal.push(column);
      else problems.push(`${column.table}.${column.name}: ${MISPLACED}`);
      continue;
    }
    const result = await ruleOf(client, column, tag);
    if (typeof result === "string") problems.push(`${column.table}.${column.name}: ${result}`);
    else rules.set(column.table, (rules.get(column.table) ?? new Map()).set(column.name, result));
  }
  const emptied = new Set<string>();
  for (const { table, comments } of (await client.query<TaggedTable>(TAGGED_TABLES)).rows) {
    const tag = tagOf(comments);
    if (tag === "empty") emptied.add(table);
    else if (tag === null) problems.push(`${table}: ${MISPLACED}`);
    else problems.push(`${table}: write "@anonymize empty" on a table, and other rules on its columns`);
  }
  problems.push(
    ...personal
      .filter(({ table, isOfView, isGenerated }) => !(isOfView || isGenerated || emptied.has(table)))
      .map(({ table, name }) => `${table}.${name}: it is "@personal": write "@anonymize" and a rule, too`),
  );
  const { rows: keys } = await client.query<KeyColumns>(KEY_COLUMNS);
  problems.push(...keys.flatMap((key) => keyProblem(key, { rules, emptied }) ?? []));
  if (problems.length > 0)
    throw new Error(`Change these comments, nothing was copied:\n${problems.map((each) => `- ${each}.`).join("\n")}`);
  return { rules, emptied };
}

/** A tag that is not read would leave the values as they are. */
const MISPLACED = 'begin the comment with its tags: "@anonymize" and "@personal" are not read behind other text';

function tagOf(comments: readonly (string | null)[]): string | null {
  return comments.map((comment) => readSmartTag(comment, "anonymize")).find((tag) => tag !== null) ?? null;
}

type TaggedTable = { readonly table: string; readonly comments: readonly (string | null)[] };

type TaggedColumn = TaggedTable & {
  readonly name: string;
  readonly isOfView: boolean;
  readonly isGenerated: boolean;
  readonly isNotNull: boolean;
  readonly isUnique: boolean;
  /** True if the partition of a row depends on it. */
  readonly isOfPartitionKey: boolean;
  /** The type as in a declaration. */
  readonly type: string;
  /** The base type of a domain; otherwise the type itself. */
  readonly baseType: string;
  /** The maximum length in characters. */
  readonly limit: number | null;
};

const NAME = quotedNameSql("nspname", "relname");

/** Partitions and tables that inherit also have the tags of their parents. */
const LINEAGE = `
  with recursive lineage (relation, ancestor) as (
    select c.oid, c.oid from pg_class c join pg_namespace n on n.oid = relnamespace where relkind in ('r', 'p', 'v', 'm') and ${HAS_COPIED_ROWS}
    union
    select relation, inhparent from lineage join pg_inherits on inhrelid = ancestor
  )`;

const TAGGED_TABLES = `${LINEAGE}
  select ${NAME} as table, array_agg(obj_description(ancestor, 'pg_class') order by ancestor <> relation) as comments
  from lineage join pg_class c on c.oid = relation join pg_namespace n on n.oid = relnamespace
  where obj_description(ancestor, 'pg_class') like '%@anonymize%' group by nspname, relname order by nspname collate "C", relname collate "C"`;

const TAGGED_COLUMNS = `${LINEAGE}
  select ${NAME} as table, a.attname::text as name, relkind in ('v', 'm') as "isOfView",
    a.attgenerated <> '' as "isGenerated", a.attnotnull or typnotnull as "isNotNull",
    format_type(a.atttypid, a.atttypmod) as type, (
      with recursive base (id) as (
        select a.atttypid union select typbasetype from base join pg_type on pg_type.oid = id where typtype = 'd')
      select typname::text from base join pg_type on pg_type.oid = id where typtype <> 'd') as "baseType",
    nullif(greatest(a.atttypmod, typtypmod), -1) - 4 as limit, exists (
      select from pg_index where indrelid = relation and (indisunique or indisexclusion) and (a.attnum = any(indkey) or exists (
        select from pg_depend where classid = 'pg_class'::regclass and objid = indexrelid and refobjid = relation and refobjsubid = a.attnum))
    ) as "isUnique", exists (
      select from lineage as whole join pg_partitioned_table on partrelid = whole.ancestor
      join pg_attribute key on key.attrelid = whole.ancestor and key.attname = a.attname
      where whole.relation = lineage.relation and (key.attnum = any(partattrs) or exists (
        select from pg_depend where classid = 'pg_class'::regclass and objid = whole.ancestor and objsubid = key.attnum
          and refclassid = classid and refobjid = objid and refobjsubid = 0 and deptype = 'i'))
    ) as "isOfPartitionKey", array_agg(col_description(ancestor, other.attnum) order by ancestor <> relation) as comments
  from lineage join pg_class c on c.oid = relation join pg_namespace n on n.oid = relnamespace
  join pg_attribute a on a.attrelid = relation and a.attnum > 0 and not a.attisdropped
  join pg_attribute other on other.attrelid = ancestor and other.attname = a.attname
  join pg_type on pg_type.oid = a.atttypid
  where col_description(ancestor, other.attnum) ~ '@(anonymize|personal)'
  group by nspname, relname, relkind, relation, typnotnull, typtypmod, a.attname, a.attnum, a.attgenerated,
    a.attnotnull, a.atttypid, a.atttypmod
  order by nspname collate "C", relname collate "C", a.attnum`;

/** Returns the rule, or the reason why there is none and the remedy. */
async function ruleOf(client: pg.ClientBase, column: TaggedColumn, tag: string): Promise<AnonymizationRule | string> {
  if (column.isOfView) return "the rows of views come from tables, whose columns need the tag";
  if (column.isGenerated) return "it is generated: write the tag on the columns that it is made of";
  const rule = parseAnonymizationRule(tag, column);
  if (typeof rule === "string") return rule;
  if (column.isOfPartitionKey) return "it is part of the partition key, so its values cannot be replaced";
  if (rule.isNull && column.isNotNull) return `it is not null: use another rule than "${tag}"`;
  if (column.isUnique && !rule.isUnique)
    return `it is part of a unique index: use "hash", or "email", instead of "${tag}"`;
  return rule.sample === null ? rule : await tryValue(client, rule, { ...column, sample: rule.sample });
}

async function tryValue(
  client: pg.ClientBase,
  rule: AnonymizationRule,
  { sample, type }: TaggedColumn & { readonly sample: string },
): Promise<AnonymizationRule | string> {
  try {
    await client.query("savepoint tried");
    await client.query(`select ${sample}`);
    await client.query("release savepoint tried");
    return rule;
  } catch (error) {
    await client.query("rollback to savepoint tried");
    return `give a value of type ${type} (${(error as Error).message})`;
  }
}

type KeyColumns = Readonly<Record<"name" | "referencing" | "referenced", string>> & {
  /** The column pairs of the referencing and of the referenced table. */
  readonly pairs: readonly Readonly<Record<"column" | "type" | "referencedColumn" | "referencedType", string>>[];
};

const nameOf = (relation: string) =>
  `(select ${NAME} from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = ${relation})`;

const KEY_COLUMNS = `
  select conname as name, ${nameOf("conrelid")} as referencing, ${nameOf("confrelid")} as referenced, (
      select json_agg(json_build_object('column', one.attname, 'type', format_type(one.atttypid, one.atttypmod),
        'referencedColumn', other.attname, 'referencedType', format_type(other.atttypid, other.atttypmod)))
      from unnest(conkey, confkey) as pair (one_number, other_number)
      join pg_attribute one on one.attrelid = conrelid and one.attnum = one_number
      join pg_attribute other on other.attrelid = confrelid and other.attnum = other_number) as pairs
  from pg_constraint where contype = 'f' and conparentid = 0 order by conrelid::regclass::text collate "C", conname`;

/** Both sides of a foreign key need the same values. */
function keyProblem(
  { name, referencing, referenced, pairs }: KeyColumns,
  { rules, emptied }: Anonymization,
): string | null {
  const ruleOfColumn = (table: string, column: string) => rules.get(table)?.get(column);
  const isAnyNull = pairs.some(({ column }) => ruleOfColumn(referencing, column)?.isNull);
  if (emptied.has(referencing) || isAnyNull) return null;
  const key = `the foreign key ${name} of ${referencing}`;
  if (emptied.has(referenced))
    return `${key} refers to ${referenced}, which is "@anonymize empty": write "@anonymize empty" on the table, or "@anonymize null" on its column`;
  const wrong = pairs.find(({ column, type, referencedColumn, referencedType }) => {
    const [one, other] = [ruleOfColumn(referencing, column), ruleOfColumn(referenced, referencedColumn)];
    return one?.tag !== other?.tag || (one && !(one.isUnique && type === referencedType));
  });
  return (
    (wrong &&
      `${key}: write "@anonymize hash", or "email", on ${wrong.column} and on ${referenced}.${wrong.referencedColumn} alike, which need the same type`) ??
    null
  );
}

import { isEnumCodec } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { itemCodecOf } from "./ArrayDimensionsPlugin.ts";
import { baseCodecOf } from "./codecs.ts";
import { toOriginalCodec } from "./IdScalarPlugin.ts";
import type { Codec, PgTable } from "./table.ts";

/** The text types of Postgres; extensions have operators for other types. */
const TEXT_TYPES: ReadonlySet<string> = new Set(["text", "varchar", "bpchar"]);
const CONTAINMENT: ReadonlySet<string> = new Set(["@>", "<@", "&&"]);

/** Each operator as found on the search path, and as Postgres's own. */
const OPERATORS = {
  "=": [sql`=`, sql`operator(pg_catalog.=)`],
  "<>": [sql`<>`, sql`operator(pg_catalog.<>)`],
  "<": [sql`<`, sql`operator(pg_catalog.<)`],
  ">": [sql`>`, sql`operator(pg_catalog.>)`],
  "<=": [sql`<=`, sql`operator(pg_catalog.<=)`],
  ">=": [sql`>=`, sql`operator(pg_catalog.>=)`],
  "@>": [sql`@>`, sql`operator(pg_catalog.@>)`],
  "<@": [sql`<@`, sql`operator(pg_catalog.<@)`],
  "&&": [sql`&&`, sql`operator(pg_catalog.&&)`],
  "<<": [sql`<<`, sql`operator(pg_catalog.<<)`],
  ">>": [sql`>>`, sql`operator(pg_catalog.>>)`],
  "&<": [sql`&<`, sql`operator(pg_catalog.&<)`],
  "&>": [sql`&>`, sql`operator(pg_catalog.&>)`],
  "-|-": [sql`-|-`, sql`operator(pg_catalog.-|-)`],
  "~~": [sql`~~`, sql`operator(pg_catalog.~~)`],
  "~~*": [sql`~~*`, sql`operator(pg_catalog.~~*)`],
  "~": [sql`~`, sql`operator(pg_catalog.~)`],
  "~*": [sql`~*`, sql`operator(pg_catalog.~*)`],
} as const;
export type OperatorName = keyof typeof OPERATORS;

/**
 * The operator for a value of the codec and another one of the same type. A type that has no operators of its own, but those of text, inet,
 * anyarray, anyenum or anyrange, is compared by these, since Postgres would prefer any on the search path whose operands are of the type
 * itself. The extension intarray has containment operators for integer[], which its indexes support.
 */
export function operatorOf(codec: Codec, operator: OperatorName): SQL {
  return OPERATORS[operator][isComparedAsAnother(codec, operator) ? 1 : 0];
}

/** The operator of `operatorOf` for rows of values. */
export function rowOperatorOf(codecs: readonly Codec[], operator: "<" | ">"): SQL {
  const areOfPostgres = codecs.every((codec) => isComparedAsAnother(codec, operator) || isOfPostgres(toBase(codec)));
  return OPERATORS[operator][areOfPostgres && codecs.some((codec) => isComparedAsAnother(codec, operator)) ? 1 : 0];
}

function isComparedAsAnother(codec: Codec, operator: OperatorName): boolean {
  const base = toBase(codec);
  if (base.arrayOfCodec) {
    const item = toBase(itemCodecOf(base));
    return isOfPostgres(item) && !(CONTAINMENT.has(operator) && typeNameOf(item) === "int4");
  }
  if (base.rangeOfCodec || isEnumCodec(base)) return true;
  if (operator.startsWith("~")) return isOfPostgres(base) && TEXT_TYPES.has(typeNameOf(base));
  return isOfPostgres(base) && ["varchar", "cidr"].includes(typeNameOf(base));
}

/** `column = value`; the value may be another column of the type. */
export function equals(codec: Codec, column: SQL, value: SQL): SQL {
  return sql`${column} ${operatorOf(codec, "=")} ${value}`;
}

/** The conditions that columns of a table's row have these values. */
export function haveValues(
  { codec }: PgTable,
  columns: readonly string[],
  row: SQL,
  valueAt: (codec: Codec, index: number) => SQL,
): SQL[] {
  return columns.map((column, index) => {
    const { codec: own } = codec.attributes[column]!;
    return equals(own, sql`${row}.${sql.identifier(column)}`, valueAt(own, index));
  });
}

function toBase(codec: Codec): Codec {
  return toOriginalCodec(baseCodecOf(toOriginalCodec(codec)));
}

function typeNameOf(codec: Codec): string {
  return codec.extensions?.pg?.name ?? codec.name;
}

function isOfPostgres(codec: Codec): boolean {
  const { pg } = codec.extensions ?? {};
  return pg ? pg.schemaName === "pg_catalog" : true;
}

import { type PgSelectStep, TYPES } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { oncePer } from "../engine/once-per.ts";
import { comparable } from "./comparable.ts";
import { type Codec, keyOf, sqlNameOf, type Table } from "./table.ts";
import { TIMES } from "./time-codec.ts";

declare global {
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `created_at desc, title`: how rows come in lists and connections; the key completes it. */
      order: string;
    }
  }
}

type Term = { readonly attribute: string; readonly direction: "ASC" | "DESC" };

export type Order = {
  readonly terms: readonly Term[];
  /** No two rows share their place, so that a cursor can mean one. */
  readonly isTotal: boolean;
};

const TERM = /^\s*(?<column>.+?)(?:\s+(?<direction>asc|desc))?\s*$/i;

/**
 * Rows come in the order that the comment of the table says, and within it by key, in the same direction so that one
 * index serves both. Without a key any order will do that is the same each time: by all columns that can be compared.
 */
export function orderOf(table: Table, isSortable: (column: string) => boolean): Order {
  const said = readOrder(table);
  const key = keyOf(table);
  const rest = key ?? Object.keys(table.codec.attributes).filter(isSortable);
  const direction = said.at(-1)?.direction ?? "ASC";
  const added = rest
    .filter((column) => !said.some(({ attribute }) => attribute === column))
    .map((attribute): Term => ({ attribute, direction }));
  return { terms: [...said, ...added], isTotal: key !== null };
}

/**
 * Core's conditions for what follows a cursor take nulls for the wrong end (@dataplan/pg 1.1.2). Whether there is a value
 * becomes a term of its own then; so an index serves only where the columns of the order are not null.
 */
export function applyOrder($rows: PgSelectStep<Table>, { terms, isTotal }: Order): void {
  const { attributes } = $rows.resource.codec;
  for (const { attribute, direction } of terms) {
    if (isTotal && !attributes[attribute]!.notNull) {
      const fragment = sql`(${$rows.alias}.${sql.identifier(attribute)} is null)`;
      $rows.orderBy({ fragment, codec: TYPES.boolean, nullable: false, direction });
    }
    $rows.orderBy({ attribute, direction, callback: comparedAsWritten });
  }
  if (isTotal) $rows.setOrderIsUnique();
}

/**
 * A cursor holds the values that a row is ordered by, and is compared with them as Postgres reads them. Core puts in what it
 * shows of them instead, which is another value for null, NaN, intervals, bytes and others.
 */
function comparedAsWritten(column: SQL, codec: Codec, isNullable: boolean): [SQL, Codec, boolean] {
  const [compared, comparedCodec] = comparable(column, codec);
  return [compared, writtenBy(comparedCodec), isNullable];
}

const writtenBy = oncePer((codec: Codec): Codec => {
  // These are selected in this spelling anyway.
  if (SPELT_EXACTLY.has(codec)) return codec;
  const { castFromPg: _, ...plain } = codec;
  return { ...plain, fromPg: (text) => text };
});

const SPELT_EXACTLY: ReadonlySet<Codec> = new Set([TIMES.timestamptz, TIMES.timestamp, TIMES.date]);

function readOrder(table: Table): Term[] {
  const { order } = table.extensions?.tags ?? {};
  if (typeof order !== "string") return [];
  return order.split(",").map((text) => {
    const { column = "", direction = "asc" } = TERM.exec(text)?.groups ?? {};
    if (!table.codec.attributes[column])
      throw new Error(`"@order ${order}" of ${sqlNameOf(table)}: there is no column "${column}"`);
    return { attribute: column, direction: direction.toLowerCase() === "desc" ? "DESC" : "ASC" };
  });
}

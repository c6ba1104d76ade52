import type { Table } from "../../engine/catalog/tables.ts";
import type { Statement } from "../../engine/database/statement.ts";
import { quotedName } from "../../engine/quoted-name.ts";
import { comparison, type Question } from "./question.ts";
import type { Answers, Cell, Truth } from "./row-test.ts";
import type { RowSight } from "./sight.ts";

/** A row as it was, by the names of its columns. */
export type Image = ReadonlyMap<string, Cell>;

export type Verdict = { readonly isVisible: boolean; readonly answers: Answers };

type Terms = {
  readonly table: Table;
  readonly rows: RowSight;
  readonly questions: readonly Question[];
};

/**
 * Has Postgres judge rows as they were when they were changed, not as they are by now: the policies' condition is held
 * against the rows themselves, under the table's own name, so that it reads as it was written.
 */
export function judgementQuery({ table, rows, questions }: Terms, images: readonly Image[]): Statement {
  const isVisible = typeof rows === "object" ? `coalesce((${rows.using}), false)` : String(rows === "all");
  const lists = [...questionLists(questions)];
  const values = [spellImages(images, table)];
  const answers = lists.map(([, list]) => {
    const { column, operator } = list[0]!;
    values.push(JSON.stringify(list.map(({ value }) => value)));
    const compared = comparison(quotedName(table.name, column), operator, "value", table.columns.get(column)!);
    return `(select json_agg(${compared} order by number) from json_array_elements_text($${values.length}::json) with ordinality as "$values" (value, number))`;
  });
  const text = `select ${[isVisible, ...answers].join(", ")}
from json_array_elements($1::json) with ordinality as "$images" ("$image", "$number")
cross join lateral ${rowOf(table, images)}
order by "$images"."$number"`;
  return { text, values };
}

/** Policies may read a generated column that is not in the log: a virtual one never is, and before Postgres 18 none was. */
function rowOf({ schema, name: table, columns }: Table, images: readonly Image[]): string {
  const alias = quotedName(table);
  const written = `json_populate_record(null::${quotedName(schema, table)}, "$images"."$image") as ${alias}`;
  const cells = [...columns.values()].map(({ name, generated }) => {
    const isComputed = generated !== null && !images.every((image) => image.has(name));
    return {
      isComputed,
      sql: isComputed ? `(${generated.expression}) as ${quotedName(name)}` : quotedName(table, name),
    };
  });
  if (!cells.some(({ isComputed }) => isComputed)) return written;
  return `(select ${cells.map(({ sql }) => sql).join(", ")} from ${written}) as ${alias}`;
}

const UNASKED: Answers = () => null;
/** The same for all: there may be many. */
export const VISIBLE: Verdict = { isVisible: true, answers: UNASKED };
export const HIDDEN: Verdict = { isVisible: false, answers: UNASKED };

/** What the rows of the answer say. */
export function readVerdict(
  questions: readonly Question[],
  [isVisible, ...answers]: readonly (string | null)[],
): Verdict {
  if (isVisible !== "t") return HIDDEN;
  if (questions.length === 0) return VISIBLE;
  const truths = new Map<string, Truth>();
  for (const [at, [, list]] of [...questionLists(questions)].entries()) {
    const said = JSON.parse(answers[at]!) as Truth[];
    for (const [number, question] of list.entries()) truths.set(keyOf(question), said[number]!);
  }
  return { isVisible: true, answers: (question) => truths.get(keyOf(question)) ?? null };
}

/** One sub-select answers all that is asked of a column by one operator, so that few statements differ. */
function questionLists(questions: readonly Question[]): ReadonlyMap<string, readonly Question[]> {
  const distinct = [...new Map(questions.map((question) => [keyOf(question), question])).values()];
  return Map.groupBy(distinct, ({ column, operator }) => JSON.stringify([column, operator]));
}

function keyOf({ column, operator, value }: Question): string {
  return JSON.stringify([column, operator, value]);
}

const spelled = new WeakMap<readonly Image[], string>();

/** Once for all who are asked about the same rows. */
function spellImages(images: readonly Image[], table: Table): string {
  const text = spelled.get(images) ?? `[${images.map((image) => spellImage(image, table)).join(",")}]`;
  spelled.set(images, text);
  return text;
}

/** Each value is a text that its type reads, but JSON, which would be read as a JSON string. */
function spellImage(image: Image, table: Table): string {
  const members: string[] = [];
  for (const [name, cell] of image) {
    if (cell === undefined || cell === null) continue;
    const type = table.columns.get(name)?.baseType;
    const isJson = type?.schema === "pg_catalog" && (type.name === "json" || type.name === "jsonb");
    members.push(`${JSON.stringify(name)}:${isJson ? cell : JSON.stringify(cell)}`);
  }
  return `{${members.join(",")}}`;
}

import type { Table } from "../../engine/catalog/tables.ts";
import { quotedName } from "../../engine/quoted-name.ts";
import type { Cell } from "./row-test.ts";

/** A row as it was, by the names of its columns. */
export type Image = ReadonlyMap<string, Cell>;

/** The rows of `$1`, in their order and under the table's own name. */
export function fromImages(table: Table, images: readonly Image[]): string {
  return `from json_array_elements($1::json) with ordinality as "$images" ("$image", "$number")
cross join lateral ${rowOf(table, images)}
order by "$images"."$number"`;
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

const spelled = new WeakMap<readonly Image[], string>();

/** What `$1` is; worked out once for all who are asked about the same rows. */
export function spellImages(images: readonly Image[], table: Table): string {
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

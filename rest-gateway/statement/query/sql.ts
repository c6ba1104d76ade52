import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import { quotedName } from "../../../engine/quoted-name.ts";
import type { Slot } from "../plan/slots.ts";

/** A piece of SQL. Only the functions of this file make one, so that text from outside is always quoted. */
export type Sql = { readonly parts: readonly (string | Slot | Sql)[] };

/** A statement without its values. */
export type Query = { readonly text: string; readonly slots: readonly Slot[] };

/** Its own text is SQL; what is put in must be SQL already. */
export function sql(strings: TemplateStringsArray, ...inserted: readonly Sql[]): Sql {
  const parts: (string | Sql)[] = [];
  for (let index = 0; index < strings.length; index++) {
    parts.push(strings[index]!);
    if (index < inserted.length) parts.push(inserted[index]!);
  }
  return { parts };
}

export const NOTHING: Sql = { parts: [] };

/** The whole of a row that is called "_", even if it has a column of that name. */
export const ROW: Sql = sql`"_".*`;

/** `"name"` or `"name"."part"` */
export function identifier(...names: readonly string[]): Sql {
  return { parts: [quotedName(...names)] };
}

export function qualified({ schema, name }: QualifiedName): Sql {
  return identifier(schema, name);
}

/** `operator("schema".=)`; null: the one on the search path. */
export function operatorIn(schema: string | null, operator: Sql): Sql {
  return schema === null ? operator : sql`operator(${identifier(schema)}.${operator})`;
}

/** Safe whatever `standard_conforming_strings` is set to. */
export function literal(text: string): Sql {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return { parts: [text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted] };
}

export function integer(value: number): Sql {
  return { parts: [String(Math.trunc(value))] };
}

/** SQL that Postgres itself wrote into its catalogue: the name of a type, a default. */
export function fromCatalog(text: string): Sql {
  return { parts: [text] };
}

export function parameter(slot: Slot): Sql {
  return { parts: [slot] };
}

export function join(pieces: readonly Sql[], separator: string): Sql {
  return { parts: pieces.flatMap((piece, index) => (index === 0 ? [piece] : [separator, piece])) };
}

/** Numbers the parameters; what comes twice is one parameter. */
export function compile(whole: Sql): Query {
  const slots: Slot[] = [];
  const numberOf = (slot: Slot): number => {
    const known = slots.findIndex((other) => isSame(slot, other));
    return known < 0 ? slots.push(slot) : known + 1;
  };
  const spell = ({ parts }: Sql): string => {
    let text = "";
    for (const part of parts) {
      text += typeof part === "string" ? part : "parts" in part ? spell(part) : `$${numberOf(part)}`;
    }
    return text;
  };
  return { text: spell(whole), slots };
}

function isSame(a: Slot, b: Slot): boolean {
  if (a.kind === "operand") return b.kind === "operand" && a.index === b.index;
  if (a.kind === "position") return b.kind === "position" && a.index === b.index;
  if (a.kind === "column") return b.kind === "column" && a.name === b.name;
  if (a.kind === "argument") return b.kind === "argument" && a.name === b.name && a.all === b.all;
  return a.kind === b.kind;
}

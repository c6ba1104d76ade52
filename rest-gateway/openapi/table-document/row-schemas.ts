import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Column } from "../../../engine/catalog/columns.ts";
import { readComment } from "../comment.ts";
import { makeColumnDescriber } from "../key-note.ts";
import type { Viewer, VisibleTable } from "../viewer.ts";
import { componentKey, type Reference, referTo } from "./component-key.ts";
import { defaultValue, describeDefault } from "./default-value.ts";
import { orNull, type Schema, type TypeSchema, withMaxLength } from "./type-schema.ts";

export type RowForm = "row" | "insert" | "update";

function rowSchemaKey(table: string, form: RowForm): string {
  return form === "row" ? componentKey(table) : `${componentKey(table)}.${form}`;
}

export function referToRow(table: string, form: RowForm): Reference {
  return referTo("schemas", rowSchemaKey(table, form));
}

/** What filters and errors look like, whatever the table. Table keys have no dot in front. */
export const SHARED_SCHEMAS: readonly (readonly [string, Schema])[] = [
  [
    "rest.filter",
    {
      type: "string",
      description:
        "`operator.value`, with operators such as eq, neq, gt, gte, lt, lte, like, ilike, in, is, fts, cs, cd and ov; `not.` in front negates.",
      examples: ["eq.1", "not.is.null", "in.(1,2,3)", "ilike.*word*"],
    },
  ],
  [
    "rest.error",
    {
      type: "object",
      description: "Postgres's own words where Postgres refused.",
      properties: {
        code: { type: "string", description: "SQLSTATE, or PGRST and three digits" },
        message: { type: "string" },
        details: { type: ["string", "array", "null"], items: {} },
        hint: { type: ["string", "null"] },
      },
      required: ["code", "message", "details", "hint"],
    },
  ],
];

type Surroundings = { readonly viewer: Viewer; readonly catalog: Catalog; readonly typeSchema: TypeSchema };

/** A row as it is read when nothing is selected, and as it is written. */
export function makeRowSchemas({ viewer, catalog, typeSchema }: Surroundings) {
  return function* ({ table, verbs, selectable, insertable, updatable }: VisibleTable): Generator<[string, Schema]> {
    const describe = makeColumnDescriber(table, viewer, catalog);
    const values = new Map<Column, Schema>();
    const valueSchemaOf = (column: Column): Schema => {
      const known = values.get(column);
      if (known) return known;
      const value = withMaxLength(typeSchema(column.type), column.maxLength);
      const schema = column.nullable ? orNull(value) : value;
      values.set(column, schema);
      return schema;
    };
    const schemaOf = (column: Column, form: RowForm): Schema => {
      const byDefault = form === "update" ? undefined : defaultValue(column.default, column.type);
      return form === "insert"
        ? { ...valueSchemaOf(column), description: describeDefault(describe(column), byDefault) }
        : { ...valueSchemaOf(column), default: byDefault, description: describe(column) };
    };
    const toObject = (
      form: RowForm,
      columns: readonly Column[],
      isRequired: (column: Column) => boolean = () => false,
    ): Schema => ({
      type: "object",
      properties: Object.fromEntries(columns.map((column) => [column.name, schemaOf(column, form)])),
      required: orNothing(columns.filter(isRequired).map(({ name }) => name)),
    });
    const { text } = readComment(table.comment);
    const originOf = (column: Column) => findOrigin(column, catalog);
    const writable = (columns: readonly Column[]) => columns.filter((column) => isWritable(originOf(column) ?? column));

    if (verbs.has("select")) {
      yield [rowSchemaKey(table.name, "row"), { description: text, ...toObject("row", selectable, () => true) }];
    }
    if (verbs.has("insert")) {
      const isRequired = (column: Column) => needsValue(column, originOf(column));
      yield [rowSchemaKey(table.name, "insert"), toObject("insert", writable(insertable), isRequired)];
    }
    if (verbs.has("update")) {
      yield [rowSchemaKey(table.name, "update"), toObject("update", writable(updatable))];
    }
  };
}

/** The stored column behind a view's; null when the view does not show one, or one that is not known here. */
function findOrigin(column: Column, catalog: Catalog): Column | null {
  if (!column.shows) return null;
  const shown = catalog.findTable(column.shows.table)?.columns.get(column.shows.column);
  return shown?.shows ? findOrigin(shown, catalog) : (shown ?? null);
}

function isWritable({ generated, identity }: Column): boolean {
  return generated === null && identity !== "always";
}

/** A view takes the defaults of the table that it shows; where that is not known, nothing is demanded. */
function needsValue(column: Column, origin: Column | null): boolean {
  if (column.nullable || column.default !== null) return false;
  const stored = column.shows ? origin : column;
  return stored !== null && stored.default === null && stored.identity === null && stored.generated === null;
}

function orNothing<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length > 0 ? items : undefined;
}
